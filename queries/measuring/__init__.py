"""What commands that measure share, and those benchmarks that are one module each."""
