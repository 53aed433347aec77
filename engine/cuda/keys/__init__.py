"""Rows by their keys: grouped, joined and sorted."""
