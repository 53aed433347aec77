"""Fragments: written once, opened, read by vectors or blocks."""
