"""The catalogue as tables: information_schema, duckdb_tables() and the like.

In: what the database holds and how the connection is set (`facts`). Out: batches of fixed columns, DuckDB's
in names, order and types, but that lists and maps are their strings. Each module has tables of one kind, and
`contents` finds them by name.
"""
