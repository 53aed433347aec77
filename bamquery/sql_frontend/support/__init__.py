"""Refuses what of a syntax tree nothing here reads, all of it at once."""
