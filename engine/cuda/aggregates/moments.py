"""Variance and standard deviation, by Chan, Golub and LeVeque's states: count, mean, squared distances."""

from __future__ import annotations

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator
from pylibcudf.unary import UnaryOperator

from bamquery.engine.cuda.aggregates.accumulator import DOUBLE, Accumulator, StateColumns, sum_counts
from bamquery.engine.cuda.casts.cast import cast
from bamquery.engine.cuda.kernels import FLOAT64, Kernels, Operand, Side
from bamquery.engine.cuda.keys.grouping import GroupCodes
from bamquery.engine.cuda.libcudf_types import device_type


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
        values = cast(kernels, Operand(self._argument, rows[0]), DOUBLE, try_=False)
        counts = codes.count(kernels, values)
        means = _divide(kernels, _sum(kernels, values, codes), counts)
        squares = _sum(
            kernels, _squared_distance(kernels, values, codes.spread_to_rows(kernels, means)), codes
        )
        return (counts, means, squares)

    def merge(self, kernels: Kernels, state: StateColumns, codes: GroupCodes) -> StateColumns:
        """Squared distances of the states' means from the common mean join the states' own."""
        filled = kernels.test(BinaryOperator.GREATER, state[0], kernels.number(0))
        codes, (counts, means, squares) = codes.filter(kernels, filled, *state)
        totals = sum_counts(kernels, counts, codes)
        weights = kernels.convert(counts, FLOAT64)
        # Means of one value far from zero must come back exactly: weigh differences, not values.
        base = some_value(kernels, means, codes)
        away = _double(kernels, BinaryOperator.SUB, means, codes.spread_to_rows(kernels, base))
        weighted = _sum(kernels, _double(kernels, BinaryOperator.MUL, weights, away), codes)
        common = _double(kernels, BinaryOperator.ADD, base, _divide(kernels, weighted, totals))
        apart = _squared_distance(kernels, means, codes.spread_to_rows(kernels, common))
        apart = _double(kernels, BinaryOperator.MUL, weights, apart)
        return (totals, common, _sum(kernels, _double(kernels, BinaryOperator.ADD, squares, apart), codes))

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


def _sum(kernels: Kernels, values: plc.Column, codes: GroupCodes) -> plc.Column:
    return codes.reduce(kernels, values, plc.aggregation.sum(), FLOAT64)


def _divide(kernels: Kernels, values: plc.Column, counts: plc.Column) -> plc.Column:
    return _double(kernels, BinaryOperator.DIV, values, kernels.convert(counts, FLOAT64))


def _squared_distance(kernels: Kernels, values: plc.Column, others: plc.Column) -> plc.Column:
    distance = _double(kernels, BinaryOperator.SUB, values, others)
    return _double(kernels, BinaryOperator.MUL, distance, distance)


def some_value(kernels: Kernels, values: plc.Column, codes: GroupCodes) -> plc.Column:
    """One value of each group, null for a group without any."""
    narrow = device_type(pa.int32())
    first = codes.reduce(kernels, kernels.positions(values.size()), plc.aggregation.min(), narrow)
    if not values.size():
        return plc.Column.all_null_like(values, codes.groups, stream=kernels.stream, mr=kernels.memory)
    beyond = kernels.number(values.size(), pa.int32())
    return kernels.gather([values], kernels.fill_null(first, beyond), nullify=True)[0]
