"""Calls over windows, written once for every device: partitions, frames, and which rows' values are taken."""
