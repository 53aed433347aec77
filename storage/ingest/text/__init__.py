"""Dates, times and zones in text."""
