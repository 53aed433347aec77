"""Casts with DuckDB's semantics, by the type they give."""
