"""Filters on columns as they are stored."""
