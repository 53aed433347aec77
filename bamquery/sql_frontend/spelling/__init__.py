"""The names of result columns that have none: expressions as DuckDB spells them."""
