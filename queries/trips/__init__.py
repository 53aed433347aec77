"""TLC's files as the tidy table `trips`, with `zones` beside it, and a Parquet copy for others."""
