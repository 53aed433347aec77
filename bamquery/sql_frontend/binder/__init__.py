"""Syntax trees to bound statements: names looked up, types known."""
