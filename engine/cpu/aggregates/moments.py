"""Variance and standard deviation.

States are count, mean and sum of squared distances from the mean, merged as in Chan, Golub and LeVeque,
"Updating Formulae and a Pairwise Algorithm for Computing Sample Variances" (1979): no difference of large
squares, so values far from zero keep their digits.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bamquery.engine.cpu.aggregates.accumulator import (
    Accumulator,
    Codes,
    StateColumns,
    count_by_group,
    drop_nulls,
    sum_by_group,
)
from bamquery.engine.cpu.aggregates.means import common_mean, group_means
from bamquery.engine.cpu.casts.cast import cast
from bamquery.engine.cpu.kernels import Column, boolean_column, from_values, stored_values


class Variance(Accumulator):
    """Variance, or its square root.

    Args:
        spare: subtracted from the count in the divisor: 1 for a sample, 0 for a population.
        root: whether the square root is wanted.
        of_mean: whether it is the mean's: divided by the root of the count.
    """

    state = "moments"

    def __init__(self, *, spare: int, root: bool, of_mean: bool = False) -> None:
        self._spare = spare
        self._root = root
        self._of_mean = of_mean

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """Count, mean and sum of squared distances."""
        column, codes = drop_nulls(column, codes)
        values = stored_values(cast(column, pa.float64(), try_=False))
        counts = count_by_group(codes, groups)
        with np.errstate(all="ignore"):
            means = group_means(values, codes, counts)
            squares = sum_by_group(codes, (values - means[codes]) ** 2, groups)
        return (counts, means, squares)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """Squared distances of the states' means from the common mean join the states' own."""
        counts, means, squares = (np.asarray(column) for column in state)
        filled = counts > 0
        codes, counts, means, squares = codes[filled], counts[filled], means[filled], squares[filled]
        totals = sum_by_group(codes, counts, groups)
        with np.errstate(all="ignore"):
            common = common_mean(counts, means, codes, totals)
            distances = squares + counts * (means - common[codes]) ** 2
            return (totals, common, sum_by_group(codes, distances, groups))

    def final(self, state: StateColumns) -> Column:
        """Null where there are too few values."""
        counts, _, squares = (np.asarray(column) for column in state)
        with np.errstate(all="ignore"):
            # One value has no spread, even where its own distance from itself is NaN.
            result = np.where(counts == 1, 0.0, squares / (counts - self._spare))
            result = np.sqrt(result) if self._root else result
            result = result / np.sqrt(counts) if self._of_mean else result
        return from_values(result, pa.float64(), boolean_column(counts > self._spare))
