"""Statements other than queries, one binder a kind."""
