"""SQL: text comes in, bound statements of `bamquery.plan` go out.

In the order that a statement passes through: `parser` (text to sqlglot's trees; `strict_parser`,
`statement_parser` and `positioned_parser` are what it adds to sqlglot), `support` (refuses what nothing here
reads), `binder.statements` (one binder a kind), `binder.queries` with `binder.sources` (clauses),
`binder.expressions` (names and types), and under those `functions`, which know types but no syntax. `syntax`
and `spelling` are what all of them know of trees and of DuckDB's names. `docs/sql.md` is what users are told.
"""
