"""Benchmarks of the I/O core: `bamquery bench block | cache | array`."""
