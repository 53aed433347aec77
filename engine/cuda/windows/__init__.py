"""Calls over windows: positions of frames as columns of whole numbers, aggregates by the shortest way."""
