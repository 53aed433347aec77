"""Tables that turn random bits into values with given frequencies or quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_CELLS_PER_EDGE: Final = 4


def frequency_table(values: Sequence[int], shares: Sequence[float], bits: int) -> NDArray[np.int32]:
    """A table of 2^bits entries in which each value has its share of places.

    Shares need not add up to one. Values rarer than half an entry are left out.
    """
    size = 1 << bits
    cumulated = np.cumsum(np.asarray(shares, np.float64))
    ends = np.rint(cumulated / cumulated[-1] * size).astype(np.int64)
    counts = np.diff(np.concatenate(([0], ends)))
    return np.repeat(np.asarray(values, np.int32), counts)


def quantile_table(knots: Sequence[tuple[float, float]], bits: int) -> NDArray[np.float64]:
    """A table of 2^bits values whose quantiles are the (share, value) knots, linear between them."""
    size = 1 << bits
    shares, values = zip(*knots, strict=True)
    return interpolate((np.arange(size) + 0.5) / size, shares, values)


class Steps:
    """Between which two of many ascending edges a number lies, by a table of places to begin at.

    The binary search of `searchsorted` misses the cache at most of its steps; this looks at a place or two.
    The scale to the table's cells is a power of two, so that it rounds nothing: the answers are the same.
    """

    def __init__(self, edges: NDArray[Any]) -> None:
        """Edges ascend from 0 (not all need to differ); numbers looked up are less than the last."""
        assert edges[0] == 0
        assert edges[-1] > 0
        self._edges = edges
        cells = _CELLS_PER_EDGE * len(edges)
        self._scale = 2.0 ** math.floor(math.log2(cells / float(edges[-1])))
        starts = np.arange(math.ceil(float(edges[-1]) * self._scale) + 1) / self._scale
        self._guide = (np.searchsorted(edges, starts, side="right") - 1).astype(np.int32)

    def find(self, numbers: NDArray[Any]) -> NDArray[np.int32]:
        """Place of the last edge that is not greater than each number: `searchsorted(..., "right") - 1`."""
        cells = (numbers * self._scale).astype(np.int32)
        found: NDArray[np.int32] = self._guide[cells]
        late = np.flatnonzero(self._edges[found + 1] <= numbers)
        while len(late):
            found[late] += 1
            late = late[self._edges[found[late] + 1] <= numbers[late]]
        return found


def interpolate(
    at: NDArray[np.float64], knots: Sequence[float], values: Sequence[float]
) -> NDArray[np.float64]:
    """A piecewise linear function at some points within its ascending knots.

    As `numpy.interp`, but of single multiplications and additions: compilers may fuse those of a loop in C,
    and then the last bit depends on the machine.
    """
    x, y = np.asarray(knots, np.float64), np.asarray(values, np.float64)
    right = np.clip(np.searchsorted(x, at, side="right"), 1, len(x) - 1)
    left = right - 1
    width = x[right] - x[left]
    share = (at - x[left]) / np.where(width > 0.0, width, 1.0)
    result: NDArray[np.float64] = y[left] + np.clip(share, 0.0, 1.0) * (y[right] - y[left])
    return result
