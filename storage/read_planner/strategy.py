"""The ways of reading a column once rows are known."""

from __future__ import annotations

import enum


class Strategy(enum.Enum):
    """The simplest first; `FragmentReader` has a method for each."""

    STREAM = "stream"
    """Every vector that zone maps did not prune, in large requests."""
    FETCH_VECTORS = "vectors"
    """The whole vectors that hold surviving rows, so that they can be verified."""
    FETCH_BLOCKS = "blocks"
    """Only the blocks that hold surviving rows."""

    __hash__ = object.__hash__  # a member is equal to itself only, and an enumeration's own is Python's
