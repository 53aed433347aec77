"""Calls over windows, for partitions that fit in memory and for those that do not."""
