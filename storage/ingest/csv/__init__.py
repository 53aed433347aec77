"""CSV files: what they are, and their records as columns."""
