"""Expressions to bound, typed expressions."""
