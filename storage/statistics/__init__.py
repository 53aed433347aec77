"""Bounds, counts and checksums of vectors and parts, and pruning by them."""
