"""Calls over windows: rows in order to partitions, peers and frames, and from those to values."""
