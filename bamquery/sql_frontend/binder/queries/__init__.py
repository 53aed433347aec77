"""Queries to logical plans, clause by clause."""
