"""Quantiles and the median: by interpolation, or one of the values; and the median of distances from it."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator
from pylibcudf.types import Order, TypeId
from pylibcudf.unary import UnaryOperator

from bamquery.engine.cuda import decimals
from bamquery.engine.cuda.aggregates.accumulator import DOUBLE, Parts
from bamquery.engine.cuda.aggregates.gathered import Gathered, codes_of
from bamquery.engine.cuda.casts.cast import cast
from bamquery.engine.cuda.grouping import order_within
from bamquery.engine.cuda.integers import Integers
from bamquery.engine.cuda.kernels import FLOAT64, INT64, INT128, Kernels, Operand, viewed
from bamquery.engine.cuda.types import device_type
from bamquery.engine.cuda.vectors import Mask, Vector

_MOST_EXACT: Final = 1 << 31
_SPLITTER: Final = float((1 << 27) + 1)
"""Splits a double into two halves of 26 bits."""


class DiscreteQuantile(Gathered):
    """The least value that the share `q` of all values does not exceed."""

    def __init__(self, quantile: float | Decimal) -> None:
        share: Any = quantile
        self._quantile: float | Decimal = abs(share)
        self._descending = math.copysign(1, quantile) < 0

    def answer(self, kernels: Kernels, values: Parts, counts: Vector) -> plc.Column:
        """Null where there is no value."""
        if not len(counts):
            return values[0]
        ordered = _ordered(kernels, values[0], counts, descending=self._descending)
        places = _starts(counts) + self._ranks(kernels, counts).greatest(1) - 1
        return _taken(kernels, ordered, places, counts)

    def _ranks(self, kernels: Kernels, counts: Vector) -> Vector:
        exact = Fraction(self._quantile)
        if isinstance(self._quantile, Decimal) and exact.denominator < _MOST_EXACT:
            # Rounded up; neither is below zero.
            return (counts * exact.numerator + (exact.denominator - 1)) / exact.denominator
        doubles = counts.to(FLOAT64)
        left = doubles - doubles * float(self._quantile)
        floor = Vector(kernels, kernels.unary(UnaryOperator.FLOOR, left.column))
        return counts - floor.to(INT64)


class ContinuousQuantile(Gathered):
    """Between the two values nearest to the share `q`, in proportion; computed in doubles, as DuckDB does.

    Args:
        quantile: from -1 to 1; below 0 it counts from the greatest value.
        kind: the result's type, which is the argument's; a decimal of 18 digits at most.
    """

    def __init__(self, quantile: float, kind: pa.DataType) -> None:
        self._quantile = abs(quantile)
        self._descending = math.copysign(1, quantile) < 0
        self._kind = kind

    def answer(self, kernels: Kernels, values: Parts, counts: Vector) -> plc.Column:
        """Null where there is no value."""
        if not len(counts):
            return values[0]
        ordered = _ordered(kernels, values[0], counts, descending=self._descending)
        starts = _starts(counts)
        rank = (counts - 1).greatest(0).to(FLOAT64) * self._quantile
        lower, upper = (
            Vector(kernels, kernels.unary(side, rank.column))
            for side in (UnaryOperator.FLOOR, UnaryOperator.CEIL)
        )
        low, high = (_taken(kernels, ordered, starts + side.to(INT64), counts) for side in (lower, upper))
        return self._between(kernels, low, high, rank - lower)

    def _between(self, kernels: Kernels, low: plc.Column, high: plc.Column, share: Vector) -> plc.Column:
        if isinstance(self._kind, pa.Decimal128Type):
            return self._between_decimals(kernels, low, high, share)
        if not pa.types.is_temporal(self._kind):
            below, above = (Vector(kernels, kernels.convert(side, FLOAT64)) for side in (low, high))
            result = _weighted(below, above, share)
            return cast(kernels, Operand(DOUBLE, result.column), self._kind, try_=False)
        stored, other = (Integers.stored(kernels, side).column for side in (low, high))
        below, above = (Vector(kernels, kernels.convert(side, FLOAT64)) for side in (stored, other))
        result = _weighted(below, above, share)
        # Halves away from zero; whole places stay as they are, since doubles do not hold all of them.
        size = Vector(kernels, kernels.unary(UnaryOperator.ABS, result.column)) + 0.5
        size = Vector(kernels, kernels.unary(UnaryOperator.FLOOR, size.column))
        rounded = (result < 0.0).choose(size * -1.0, size).to(INT64)
        whole = share.equals(0.0).choose(Vector(kernels, stored), rounded).column
        return as_stored(kernels, whole, device_type(self._kind))

    def _between_decimals(
        self, kernels: Kernels, low: plc.Column, high: plc.Column, share: Vector
    ) -> plc.Column:
        """Cut off at the scale."""
        whole, other = (
            Vector(kernels, kernels.convert(decimals.unscaled(side), INT64)) for side in (low, high)
        )
        below, above = whole.to(FLOAT64), other.to(FLOAT64)
        # A value itself stays as it is: doubles do not hold all of them.
        units = share.equals(0.0).choose(whole, _multiply_add(share, above - below, below).to(INT64))
        return viewed(kernels.convert(units.column, INT128), device_type(self._kind))


class MedianDistance(Gathered):
    """The median of the values' distances from their median: `mad`, of floats and decimals.

    A distance may have a digit more than the type; their median has not, as half of them are within it.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self._median = ContinuousQuantile(0.5, kind)
        self._kind = kind

    def answer(self, kernels: Kernels, values: Parts, counts: Vector) -> plc.Column:
        """Null where there is no value."""
        medians = codes_of(kernels, counts).of_rows(kernels, self._median.answer(kernels, values, counts))
        return self._median.answer(kernels, (self._distances(kernels, values[0], medians),), counts)

    def _distances(self, kernels: Kernels, values: plc.Column, medians: plc.Column) -> plc.Column:
        if not isinstance(self._kind, pa.Decimal128Type):
            apart = kernels.binary(BinaryOperator.SUB, values, medians, device_type(self._kind))
            return kernels.unary(UnaryOperator.ABS, apart)
        a, b = decimals.unscaled(values), decimals.unscaled(medians)
        ways = [kernels.binary(BinaryOperator.SUB, x, y, INT128) for x, y in ((a, b), (b, a))]
        below = kernels.test(BinaryOperator.LESS, a, b)
        return viewed(kernels.where(below, ways[1], ways[0]), device_type(self._kind))


def as_stored(kernels: Kernels, whole: plc.Column, kind: plc.DataType) -> plc.Column:
    """Whole numbers as the dates, times or timestamps that are stored so."""
    if kind.id() == TypeId.TIMESTAMP_DAYS:
        whole = kernels.convert(whole, plc.DataType(TypeId.INT32))
    return whole if kind.id() == TypeId.INT64 else viewed(whole, kind)


def _weighted(below: Vector, above: Vector, share: Vector) -> Vector:
    # Weights rather than a distance: that between infinities, or from one, would be NaN.
    return share.equals(0.0).choose(below, below * (share * -1.0 + 1.0) + above * share)


def _multiply_add(a: Vector, b: Vector, c: Vector) -> Vector:
    """`a * b + c`, rounded once, as DuckDB's compiled code does it: the result is cut off next.

    By Dekker's error-free transformations, as the CPU device does it.
    """

    def halves(x: Vector) -> tuple[Vector, Vector]:
        scaled = x * _SPLITTER
        high = scaled - (scaled - x)
        return high, x - high

    product = a * b
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    total = product + c
    part = total - product
    return total + (((product - (total - part)) + (c - part)) + lost)


def _starts(counts: Vector) -> Vector:
    """Where each group's values begin."""
    return counts.totals().cut(0, len(counts))


def _taken(kernels: Kernels, values: plc.Column, places: Vector, counts: Vector) -> plc.Column:
    """A value of each group, null for one without values."""
    beyond: Mask = counts > 0
    return kernels.gather([values], beyond.choose(places, values.size()).column, nullify=True)[0]


def _ordered(kernels: Kernels, values: plc.Column, counts: Vector, *, descending: bool) -> plc.Column:
    """Each group's values in order, NaN the greatest."""
    order = Order.DESCENDING if descending else Order.ASCENDING
    places = order_within(kernels, codes_of(kernels, counts), [values], [order])
    return kernels.gather([values], places)[0]
