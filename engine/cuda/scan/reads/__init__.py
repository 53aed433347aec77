"""Ways to read a column of a chunk, with their checks and their accounting."""
