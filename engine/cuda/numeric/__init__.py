"""Arithmetic, decimals, rounding and mathematical functions."""
