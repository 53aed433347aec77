"""What `Connection` is put together of: relations of files and objects, and DuckDB's names."""
