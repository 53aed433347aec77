"""Queries within expressions, and how they become joins."""
