"""Values of literals: their conversion, and what strings mean as numbers, times and intervals."""
