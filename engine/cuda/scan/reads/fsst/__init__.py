"""Ways to read compressed strings."""
