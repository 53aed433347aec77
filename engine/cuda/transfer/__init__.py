"""Frames between Arrow and the GPU."""
