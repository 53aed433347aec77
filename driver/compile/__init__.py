"""Kernels from source to machine code, and where that is kept."""
