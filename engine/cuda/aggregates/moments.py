"""Variance and standard deviation, by Chan, Golub and LeVeque's states: count, mean, squared distances."""

from __future__ import annotations

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator
from pylibcudf.unary import UnaryOperator

from bamquery.engine.cuda.aggregates.accumulator import DOUBLE, Accumulator, StateColumns, sum_counts
from bamquery.engine.cuda.aggregates.group_sums import GroupSums
from bamquery.engine.cuda.casts.cast import cast
from bamquery.engine.cuda.kernels import FLOAT64, Kernels, Operand, Side
from bamquery.engine.cuda.keys.grouping import GroupCodes
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.vectors import Vector


class Variance(Accumulator):
    """Variance, or its square root.

    Args:
        argument: the argument's type.
        spare: subtracted from the count in the divisor: 1 for a sample, 0 for a population.
        root: whether the square root is wanted.
        of_mean: whether it is the mean's: divided by the root of the count.
    """

    def __init__(self, argument: pa.DataType, *, spare: int, root: bool, of_mean: bool = False) -> None:
        self._argument = argument
        self._spare = spare
        self._root = root
        self._of_mean = of_mean

    def partial(self, kernels: Kernels, rows: StateColumns, codes: GroupCodes) -> StateColumns:
        """Count, mean and sum of squared distances."""
        column = cast(kernels, Operand(self._argument, rows[0]), DOUBLE, try_=False)
        if column.null_count():
            codes, (column,) = codes.filter(kernels, kernels.is_valid(column), column)
        values, sums = Vector(kernels, column), GroupSums(kernels, codes)
        counts = codes.count(kernels)
        means = sums.mean(values, Vector(kernels, counts).cast(FLOAT64))
        away = values - sums.spread_to_rows(means)
        return (counts, means.column, sums.sum(away * away).column)

    def merge(self, kernels: Kernels, state: StateColumns, codes: GroupCodes) -> StateColumns:
        """Squared distances of the states' means from the common mean join the states' own."""
        filled = kernels.test(BinaryOperator.GREATER, state[0], kernels.number(0))
        codes, kept = codes.filter(kernels, filled, *state)
        sums = GroupSums(kernels, codes)
        totals = sum_counts(kernels, kept[0], codes)
        counts, means, squares = (Vector(kernels, column).cast(FLOAT64) for column in kept)
        common = sums.common_mean(counts, means, Vector(kernels, totals).cast(FLOAT64))
        away = means - sums.spread_to_rows(common)
        return (totals, common.column, sums.sum(squares + counts * (away * away)).column)

    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """Null where there are too few values."""
        counts, _, squares = state
        divisor = kernels.binary(
            BinaryOperator.SUB, counts, kernels.number(self._spare), device_type(pa.int64())
        )
        result = _divide(kernels, squares, divisor)
        # One value has no spread, even where its own distance from itself is NaN.
        alone = kernels.test(BinaryOperator.EQUAL, counts, kernels.number(1))
        result = kernels.where(alone, kernels.number(0.0, DOUBLE), result)
        if self._root:
            result = kernels.unary(UnaryOperator.SQRT, result)
        if self._of_mean:
            roots = kernels.unary(UnaryOperator.SQRT, kernels.convert(counts, FLOAT64))
            result = _double(kernels, BinaryOperator.DIV, result, roots)
        enough = kernels.test(BinaryOperator.GREATER, counts, kernels.number(self._spare))
        return kernels.where(enough, result, kernels.null(DOUBLE))


def _double(kernels: Kernels, operator: BinaryOperator, a: Side, b: Side) -> plc.Column:
    return kernels.binary(operator, a, b, FLOAT64)


def _divide(kernels: Kernels, values: plc.Column, counts: plc.Column) -> plc.Column:
    return _double(kernels, BinaryOperator.DIV, values, kernels.convert(counts, FLOAT64))
