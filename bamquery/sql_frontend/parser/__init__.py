"""Text to syntax trees: sqlglot's dialect of DuckDB, made stricter, with a place for every node."""
