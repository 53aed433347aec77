"""Functions and operators by their SQL names: argument counts, casts, result types."""
