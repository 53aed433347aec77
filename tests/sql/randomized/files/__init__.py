"""Random CSV and JSON files, whose names, types and values DuckDB finds out as well."""
