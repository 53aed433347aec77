"""Skewness and kurtosis.

States are count, mean and the sums of the second, third and fourth powers of the distances from the mean;
merged by moving each state's powers to the common mean (Pébay, "Formulas for Robust, One-Pass Parallel
Computation of Covariances and Arbitrary-Order Statistical Moments", 2008).
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
from bamquery.engine.cpu.aggregates.means import Numbers, common_mean, group_means
from bamquery.engine.cpu.kernels import Column, boolean_column, from_values, stored_values
from bamquery.errors import ExecutionError


class Shape(Accumulator):
    """`skewness`, `kurtosis` or `kurtosis_pop` of doubles."""

    def __init__(self, function: str) -> None:
        self._function = function

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """The states."""
        column, codes = drop_nulls(column, codes)
        values = stored_values(column)
        counts = count_by_group(codes, groups)
        with np.errstate(all="ignore"):
            means = group_means(values, codes, counts)
            away = values - means[codes]
            powers = [sum_by_group(codes, away**power, groups) for power in (2, 3, 4)]
        return (counts, means, *powers)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The powers about the common mean."""
        arrays = [np.asarray(column) for column in state]
        filled = arrays[0] > 0
        codes = codes[filled]
        counts, means, second, third, fourth = (array[filled] for array in arrays)
        totals = sum_by_group(codes, counts, groups)
        with np.errstate(all="ignore"):
            common = common_mean(counts, means, codes, totals)
            d = means - common[codes]
            moved = (
                second + counts * d**2,
                third + 3 * d * second + counts * d**3,
                fourth + 4 * d * third + 6 * d**2 * second + counts * d**4,
            )
            return (totals, common, *(sum_by_group(codes, power, groups) for power in moved))

    def final(self, state: StateColumns) -> Column:
        """Null where there are too few values, or all are one.

        Raises:
            ExecutionError: values are infinite, not numbers, or too large.
        """
        counts, _, second, third, fourth = (np.asarray(column) for column in state)
        n = counts.astype(np.float64)
        with np.errstate(all="ignore"):
            if self._function == "skewness":
                least, result = 3, _skewness(n, second, third)
            elif self._function == "kurtosis":
                least, result = 4, _kurtosis(n, second, fourth)
            else:
                least, result = 2, fourth / n / (second / n) ** 2 - 3
        known = (counts >= least) & (second != 0)
        if not np.isfinite(result[known]).all():
            raise ExecutionError(f"{self._function} is out of range: a value is infinite, NaN or too large")
        return from_values(result, pa.float64(), boolean_column(known))


def _skewness(n: Numbers, second: Numbers, third: Numbers) -> Numbers:
    """Adjusted for the size of the sample."""
    result: Numbers = np.sqrt(n * (n - 1)) / (n - 2) * (third / n) / (second / n) ** 1.5
    return result


def _kurtosis(n: Numbers, second: Numbers, fourth: Numbers) -> Numbers:
    """Of a sample, above that of a normal distribution."""
    spread = second / (n - 1)
    result: Numbers = n * (n + 1) * fourth / ((n - 1) * (n - 2) * (n - 3) * spread**2)
    result -= 3 * (n - 1) ** 2 / ((n - 2) * (n - 3))
    return result
