"""Columns that are read whole, before any condition is asked."""
