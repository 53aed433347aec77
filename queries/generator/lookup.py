"""Tables that turn random bits into values with given frequencies or quantiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


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
