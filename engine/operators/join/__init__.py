"""Joins by strategy: in memory, hybrid hash, block nested loop, keys only."""
