"""Columns of stored tables that stay in a GPU's memory, and scans of them."""
