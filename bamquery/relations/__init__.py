"""Queries as values: a relation, the relations made from it, its rows as other libraries have them."""
