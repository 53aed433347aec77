"""fsum and favg: sums of doubles that keep what each addition rounds away.

A sum is two doubles, the rounded one and the rest (Knuth's two-sum, The Art of Computer Programming vol. 2,
4.2.2), so what is small beside a partial sum is still there when that goes. Pairs of neighbours are added,
then pairs of those: no order of additions differs by more than a part in 2**100.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.accumulator import (
    Accumulator,
    Codes,
    StateColumns,
    count_by_group,
    drop_nulls,
    sum_by_group,
)
from bamquery.engine.cpu.kernels import Column, boolean_column, from_values, stored_values
from bamquery.engine.cpu.keys.stable_order import stable_order
from bamquery.statement_context.cancellation import check_cancelled

Sums = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Rounded sums, and what they lack."""


class CompensatedSum(Accumulator):
    """Of doubles; null where there are none.

    Args:
        mean: divide by how many there are.
    """

    state = "compensated sums"

    def __init__(self, *, mean: bool) -> None:
        self._mean = mean

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """Sum, its rest, and the count."""
        column, codes = drop_nulls(column, codes)
        values = stored_values(column)
        sums = _sum_groups((values, np.zeros_like(values)), codes, groups)
        return (*sums, count_by_group(codes, groups))

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The sums of both."""
        high, low, counts = (np.asarray(column) for column in state)
        return (*_sum_groups((high, low), codes, groups), sum_by_group(codes, counts, groups))

    def final(self, state: StateColumns) -> Column:
        """Null where the count is 0."""
        high, low, counts = (np.asarray(column) for column in state)
        with np.errstate(all="ignore"):
            sums: NDArray[Any] = high + low
            answers = sums / counts if self._mean else sums
        return from_values(answers, pa.float64(), boolean_column(counts > 0))


def _sum_groups(sums: Sums, codes: Codes, groups: int) -> Sums:
    """The sum of each group's, 0 of nothing."""
    high, low = sums
    owners = np.asarray(codes)
    if not (owners[1:] >= owners[:-1]).all():
        order = stable_order(owners, groups)
        high, low, owners = high[order], low[order], owners[order]
    with np.errstate(all="ignore"):
        while len(owners) > 1:
            check_cancelled()
            starts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))
            if len(starts) == len(owners):
                break
            lengths = np.diff(np.append(starts, len(owners)))
            place = np.arange(len(owners)) - np.repeat(starts, lengths)
            left = np.flatnonzero(place % 2 == 0)
            right = np.minimum(left + 1, len(owners) - 1)
            paired = (right > left) & (owners[right] == owners[left])
            others = np.where(paired, high[right], 0.0), np.where(paired, low[right], 0.0)
            high, low = _add_compensated((high[left], low[left]), others)
            owners = owners[left]
    totals = np.zeros(groups), np.zeros(groups)
    for total, column in zip(totals, (high, low), strict=True):
        total[owners] = column
    return totals


def _add_compensated(one: Sums, other: Sums) -> Sums:
    (a, a_rest), (b, b_rest) = one, other
    rounded = a + b
    back = rounded - a
    rest = (a - (rounded - back)) + (b - back) + (a_rest + b_rest)
    high = rounded + rest
    # Beside an infinity or NaN there is no rest.
    finite = np.isfinite(rounded)
    return np.where(finite, high, rounded), np.where(finite, rest - (high - rounded), 0.0)
