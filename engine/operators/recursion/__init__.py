"""Queries that name themselves: a step repeated over its own rows."""
