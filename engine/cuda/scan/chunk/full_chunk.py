"""How many vectors a chunk in the middle of a scan has: by what its widest column weighs."""

from __future__ import annotations

from typing import Final

from bamquery.engine.cuda.scan.resources.row_bytes import RowBytes
from bamquery.storage.format.layout import VECTOR_ROWS

_LIMIT_SHARE: Final = 16
"""A chunk's widest column weighs at most this share of the memory limit."""
_MOST_VALUES: Final = 4
"""Without a limit it weighs at most so many times what is read of it, should all rows pass."""


def full_chunk(
    row: RowBytes, memory_limit: int | None, most: int, most_vectors: int, *, filtered: bool
) -> int:
    """Vectors of a chunk whose widest column weighs `most` bytes.

    Where rows are filtered, that is as it is stored: few rows of packed vectors become values.

    Args:
        row: what the columns weigh.
        memory_limit: the session's, in bytes; None without one.
        most: bytes.
        most_vectors: at most so many, however little they weigh.
        filtered: whether rows are filtered.
    """
    limit = _MOST_VALUES * most if memory_limit is None else memory_limit // _LIMIT_SHARE
    size = row.stored if filtered else row.plain
    vectors = min(most / (size * VECTOR_ROWS), limit / (row.plain * VECTOR_ROWS))
    return max(1, min(most_vectors, int(vectors)))
