"""Formulas that every device computes by."""
