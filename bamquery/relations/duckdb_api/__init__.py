"""What users of DuckDB look for in a relation: its names, and what to take instead of what there is not."""
