"""Quantiles and the median: by interpolation, or one of the values; and the median of distances from it."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator
from pylibcudf.types import Order
from pylibcudf.unary import UnaryOperator

from bamquery.engine.cuda.aggregates.accumulator import StateColumns
from bamquery.engine.cuda.aggregates.value_lists import HolisticAggregate, group_codes
from bamquery.engine.cuda.expressions.interpolation import interpolate
from bamquery.engine.cuda.kernels import FLOAT64, INT64, INT128, Kernels, view_as
from bamquery.engine.cuda.keys.grouping import sort_within_groups
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.numeric import decimals
from bamquery.engine.cuda.vectors import Mask, Vector

_MOST_EXACT: Final = 1 << 31


class DiscreteQuantile(HolisticAggregate):
    """The least value that the share `q` of all values does not exceed."""

    def __init__(self, quantile: float | Decimal) -> None:
        share: Any = quantile
        self._quantile: float | Decimal = abs(share)
        self._descending = math.copysign(1, quantile) < 0

    def answer(self, kernels: Kernels, values: StateColumns, counts: Vector) -> plc.Column:
        """Null where there is no value."""
        if not len(counts):
            return values[0]
        ordered = _sort_groups(kernels, values[0], counts, descending=self._descending)
        places = _starts(counts) + self._ranks(kernels, counts).maximum(1) - 1
        return _take_per_group(kernels, ordered, places, counts)

    def _ranks(self, kernels: Kernels, counts: Vector) -> Vector:
        exact = Fraction(self._quantile)
        if isinstance(self._quantile, Decimal) and exact.denominator < _MOST_EXACT:
            # Rounded up; neither is below zero.
            return (counts * exact.numerator + (exact.denominator - 1)) / exact.denominator
        doubles = counts.cast(FLOAT64)
        left = doubles - doubles * float(self._quantile)
        floor = Vector(kernels, kernels.unary(UnaryOperator.FLOOR, left.column))
        return counts - floor.cast(INT64)


class ContinuousQuantile(HolisticAggregate):
    """Between the two values nearest to the share `q`, in proportion; computed in doubles, as DuckDB does.

    Args:
        quantile: from -1 to 1; below 0 it counts from the greatest value.
        kind: the result's type, which is the argument's; a decimal of 18 digits at most.
    """

    def __init__(self, quantile: float, kind: pa.DataType) -> None:
        self._quantile = abs(quantile)
        self._descending = math.copysign(1, quantile) < 0
        self._kind = kind

    def answer(self, kernels: Kernels, values: StateColumns, counts: Vector) -> plc.Column:
        """Null where there is no value."""
        if not len(counts):
            return values[0]
        ordered = _sort_groups(kernels, values[0], counts, descending=self._descending)
        starts = _starts(counts)
        rank = (counts - 1).maximum(0).cast(FLOAT64) * self._quantile
        lower, upper = (
            Vector(kernels, kernels.unary(side, rank.column))
            for side in (UnaryOperator.FLOOR, UnaryOperator.CEIL)
        )
        low, high = (
            _take_per_group(kernels, ordered, starts + side.cast(INT64), counts) for side in (lower, upper)
        )
        return interpolate(kernels, low, high, rank - lower, self._kind)


class MedianDistance(HolisticAggregate):
    """The median of the values' distances from their median: `mad`, of floats and decimals.

    A distance may have a digit more than the type; their median has not, as half of them are within it.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self._median = ContinuousQuantile(0.5, kind)
        self._kind = kind

    def answer(self, kernels: Kernels, values: StateColumns, counts: Vector) -> plc.Column:
        """Null where there is no value."""
        medians = group_codes(kernels, counts).spread_to_rows(
            kernels, self._median.answer(kernels, values, counts)
        )
        return self._median.answer(kernels, (self._distances(kernels, values[0], medians),), counts)

    def _distances(self, kernels: Kernels, values: plc.Column, medians: plc.Column) -> plc.Column:
        if not isinstance(self._kind, pa.Decimal128Type):
            apart = kernels.binary(BinaryOperator.SUB, values, medians, device_type(self._kind))
            return kernels.unary(UnaryOperator.ABS, apart)
        a, b = decimals.unscaled_values(values), decimals.unscaled_values(medians)
        ways = [kernels.binary(BinaryOperator.SUB, x, y, INT128) for x, y in ((a, b), (b, a))]
        below = kernels.test(BinaryOperator.LESS, a, b)
        return view_as(kernels.where(below, ways[1], ways[0]), device_type(self._kind))


def _starts(counts: Vector) -> Vector:
    """Where each group's values begin."""
    return counts.totals().slice(0, len(counts))


def _take_per_group(kernels: Kernels, values: plc.Column, places: Vector, counts: Vector) -> plc.Column:
    """A value of each group, null for one without values."""
    beyond: Mask = counts > 0
    return kernels.gather([values], beyond.choose(places, values.size()).column, nullify=True)[0]


def _sort_groups(kernels: Kernels, values: plc.Column, counts: Vector, *, descending: bool) -> plc.Column:
    """Each group's values in order, NaN the greatest."""
    order = Order.DESCENDING if descending else Order.ASCENDING
    places = sort_within_groups(kernels, group_codes(kernels, counts), [values], [order])
    return kernels.gather([values], places)[0]
