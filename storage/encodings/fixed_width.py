"""What reads of buffers with one width a row take; counted once for all columns of one width."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.encodings.encoding import Footprint
from bamquery.storage.format.layout import VECTOR_ROWS, Extent

Number = TypeVar("Number", bound=np.generic)

_VECTOR_SHIFT: Final = VECTOR_ROWS.bit_length() - 1
_REMEMBERED: Final = 3
"""Rows, their vectors, and the candidates: what a chunk's columns are counted for, one after another."""


def vector_ranges(
    extent: Extent, bits: int, vectors: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets and lengths of vectors in a buffer with `bits` bits a row."""
    size = VECTOR_ROWS * bits // 8
    offsets = vectors * size
    lengths = np.minimum(extent.length - offsets, size)
    return extent.offset + offsets, lengths


def positions_in(vectors: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where rows of a fragment are among the rows of ascending vectors, laid end to end; all are there."""
    if not len(vectors):
        return rows
    first, last = int(vectors[0]), int(vectors[-1])
    if last - first == len(vectors) - 1:
        return rows - first * VECTOR_ROWS
    moved = np.zeros(last + 1 - first, np.int64)  # of each vector, how many rows it has moved ahead
    moved[vectors - first] = (vectors - np.arange(len(vectors))) * VECTOR_ROWS
    # In place: to touch the pages of another array of all rows takes longer than to compute what is in it.
    found = rows >> _VECTOR_SHIFT
    if first:
        found -= first
    np.take(moved, found, out=found, mode="clip")
    np.subtract(rows, found, out=found)
    return found


def rows_at(vectors: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which rows of a fragment are at positions among the rows of ascending vectors, laid end to end.

    Only a fragment's last vector may have fewer rows than others.
    """
    first = int(vectors[0]) if len(vectors) else 0
    if len(vectors) and int(vectors[-1]) - first == len(vectors) - 1:
        return positions + first * VECTOR_ROWS
    found = positions >> _VECTOR_SHIFT
    if len(found):
        np.take(vectors, found, out=found, mode="clip")
    found <<= _VECTOR_SHIFT
    found += positions & (VECTOR_ROWS - 1)
    return found


def whole_footprint(extent: Extent, bits: int, vectors: NDArray[np.int64], block_size: int) -> Footprint:
    """What reading whole vectors of a buffer with `bits` bits a row takes. The vectors stay as they are."""

    def count() -> tuple[int, int]:
        return _native.count_range_blocks(*vector_ranges(extent, bits, vectors), block_size)

    return _memoize_footprint(vectors, (bits, extent.offset % block_size, block_size, extent.length), count)


def fixed_footprint(extent: Extent, bits: int, rows: NDArray[np.int64], block_size: int) -> Footprint:
    """What reading single rows of a buffer with `bits` bits a row takes. The rows stay as they are."""

    def count() -> tuple[int, int]:
        if bits == 1:
            return _native.count_bit_blocks(extent.offset, rows, block_size)
        return _native.count_row_blocks(extent.offset, bits // 8, bits // 8, rows, block_size)

    return _memoize_footprint(rows, (bits, extent.offset % block_size, block_size), count)


class _Counted(threading.local):
    """Of a thread: arrays that were asked about last, each with what was counted for it."""

    def __init__(self) -> None:
        self.last: deque[tuple[NDArray[np.int64], dict[tuple[int, ...], Footprint]]] = deque(
            maxlen=_REMEMBERED
        )


_counted = _Counted()


def _memoize_footprint(
    places: NDArray[np.int64], key: tuple[int, ...], count: Callable[[], tuple[int, int]]
) -> Footprint:
    """What `count()` gave for these places and that key, where a thread asks again soon."""
    known = next((found for array, found in _counted.last if array is places), None)
    if known is None:
        known = {}
        _counted.last.append((places, known))
    footprint = known.get(key)
    if footprint is None:
        footprint = known[key] = Footprint(*count())
    return footprint


def of_vectors(figures: NDArray[Number], vectors: NDArray[np.int64]) -> NDArray[Number]:
    """What an array has of ascending vectors, a row each: a part of it where they lie side by side.

    The answer may be shared, and stays as it is.
    """
    if len(vectors):
        first = int(vectors[0])
        if int(vectors[-1]) - first == len(vectors) - 1:
            return figures[first : first + len(vectors)]
    return figures[vectors]
