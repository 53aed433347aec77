"""Aggregate functions: from rows to states, from states to fewer states, from states to values."""
