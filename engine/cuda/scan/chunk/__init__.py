"""Which vectors a chunk has, which of its rows are alive, and its memory."""
