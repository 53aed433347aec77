"""Which of a group's values in order a quantile is made of: DuckDB's formulas, for numbers of values."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

_MOST_EXACT: Final = 1 << 31


def descends(quantile: float | Decimal) -> bool:
    """Whether the share counts from the greatest value: it is below 0, or is -0.0."""
    return math.copysign(1, quantile) < 0


def discrete_ranks(quantile: float | Decimal, counts: Counts) -> Counts:
    """The place, from 0, of the least value that the share of all `counts` values does not exceed.

    Args:
        quantile: from 0 to 1; a decimal is computed with exactly.
        counts: values of each group; of none the place is 0.
    """
    return np.maximum(_values_up_to(quantile, counts), 1) - 1


def _values_up_to(quantile: float | Decimal, counts: Counts) -> Counts:
    exact = Fraction(quantile)
    if isinstance(quantile, Decimal) and exact.denominator < _MOST_EXACT:
        times: Counts = counts * exact.numerator
        return -(-times // exact.denominator)
    return counts - np.floor(counts - float(quantile) * counts).astype(np.int64)


def continuous_ranks(quantile: float, counts: Counts) -> tuple[Counts, Counts, NDArray[np.float64]]:
    """The places, from 0, of the two nearest values, and how far it is from the first to the second.

    Args:
        quantile: from 0 to 1.
        counts: values of each group; of none the places are 0.
    """
    rank = np.where(counts > 0, (counts - 1) * quantile, 0.0)
    lower, upper = np.floor(rank), np.ceil(rank)
    return lower.astype(np.int64), upper.astype(np.int64), rank - lower
