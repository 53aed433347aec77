"""Skewness and kurtosis.

States are count, mean and the sums of the second, third and fourth powers of the distances from the mean;
merged by moving each state's powers to the common mean (Pébay, "Formulas for Robust, One-Pass Parallel
Computation of Covariances and Arbitrary-Order Statistical Moments", 2008).
"""

from __future__ import annotations

import pylibcudf as plc

from bamquery.engine.cuda.aggregates.accumulator import DOUBLE, Accumulator, StateColumns, sum_counts
from bamquery.engine.cuda.aggregates.group_sums import GroupSums, root
from bamquery.engine.cuda.kernels import FLOAT64, Kernels
from bamquery.engine.cuda.keys.grouping import GroupCodes
from bamquery.engine.cuda.vectors import Mask, Vector
from bamquery.errors import ExecutionError


class Shape(Accumulator):
    """`skewness`, `kurtosis` or `kurtosis_pop` of doubles."""

    def __init__(self, function: str) -> None:
        self._function = function

    def partial(self, kernels: Kernels, rows: StateColumns, codes: GroupCodes) -> StateColumns:
        """The states."""
        (column,) = rows
        if column.null_count():
            codes, (column,) = codes.filter(kernels, kernels.is_valid(column), column)
        values, sums = Vector(kernels, column), GroupSums(kernels, codes)
        counts = codes.count(kernels)
        means = sums.mean(values, Vector(kernels, counts).cast(FLOAT64))
        away = values - sums.spread_to_rows(means)
        squares = away * away
        powers = [sums.sum(power).column for power in (squares, squares * away, squares * squares)]
        return (counts, means.column, *powers)

    def merge(self, kernels: Kernels, state: StateColumns, codes: GroupCodes) -> StateColumns:
        """The powers about the common mean."""
        filled = Vector(kernels, state[0]) > 0
        codes, kept = codes.filter(kernels, filled.column, *state)
        sums = GroupSums(kernels, codes)
        totals = sum_counts(kernels, kept[0], codes)
        counts, means, second, third, fourth = (Vector(kernels, column).cast(FLOAT64) for column in kept)
        common = sums.common_mean(counts, means, Vector(kernels, totals).cast(FLOAT64))
        d = means - sums.spread_to_rows(common)
        d2 = d * d
        moved = (
            second + counts * d2,
            third + d * second * 3.0 + counts * d2 * d,
            fourth + d * third * 4.0 + d2 * second * 6.0 + counts * d2 * d2,
        )
        return (totals, common.column, *(sums.sum(power).column for power in moved))

    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """Null where there are too few values, or all are one.

        Raises:
            ExecutionError: values are infinite, not numbers, or too large.
        """
        counts, _, second, third, fourth = (Vector(kernels, column).cast(FLOAT64) for column in state)
        if not len(counts):
            return kernels.nulls(0, DOUBLE)
        if self._function == "skewness":
            least, result = 3, _skewness(kernels, counts, second, third)
        elif self._function == "kurtosis":
            least, result = 4, _kurtosis(counts, second, fourth)
        else:
            spread = second / counts
            least, result = 2, fourth / counts / (spread * spread) - 3.0
        known = Mask(kernels, kernels.fill_null(((counts >= float(least)) & second.differs(0.0)).column))
        # What is infinite has no difference from itself either.
        wrong = Mask(kernels, kernels.is_nan((result - result).column)) & known
        if wrong.any():
            raise ExecutionError(f"{self._function} is out of range: a value is infinite, NaN or too large")
        return kernels.where(known.column, result.column, kernels.null(DOUBLE))


def _skewness(kernels: Kernels, n: Vector, second: Vector, third: Vector) -> Vector:
    """Adjusted for the size of the sample."""
    return root(kernels, n * (n - 1.0)) / (n - 2.0) * (third / n) / (second / n).power(1.5)


def _kurtosis(n: Vector, second: Vector, fourth: Vector) -> Vector:
    """Of a sample, above that of a normal distribution."""
    spread, apart = second / (n - 1.0), (n - 2.0) * (n - 3.0)
    result = n * (n + 1.0) * fourth / ((n - 1.0) * apart * (spread * spread))
    return result - (n - 1.0) * (n - 1.0) * 3.0 / apart
