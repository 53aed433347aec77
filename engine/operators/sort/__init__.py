"""Rows in order: in memory, in sorted runs, or only the first ones."""
