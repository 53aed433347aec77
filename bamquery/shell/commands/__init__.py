"""Dot-commands: one table of them (`registry`), their functions in groups."""
