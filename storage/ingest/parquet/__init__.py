"""Parquet files, a few pages at a time."""
