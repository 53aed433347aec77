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
    table: NDArray[np.float64] = np.interp((np.arange(size) + 0.5) / size, shares, values)
    return table
