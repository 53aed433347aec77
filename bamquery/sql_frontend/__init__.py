"""SQL: text comes in, bound statements of `bamquery.plan` go out.

In the order that a statement passes through: `parser` (text to sqlglot's trees; `strict_parser`,
`statement_parser` and `placing_parser` are what it adds to sqlglot), `support` (refuses what nothing here
reads), `statements` (one binder a kind), `binder_query` with `binder_select` and `binder_sources` (clauses),
`binder_expressions` with `binder_forms`, `binder_calls` and `binder_aggregates` (names and types), and under
those `functions`, `aggregates`, `operators` and `coercion`, which know types but no syntax. `docs/sql.md` is
what users are told.
"""
