"""Values between two others, in proportion, computed in doubles as DuckDB's quantile_cont does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.types import TypeId
from pylibcudf.unary import UnaryOperator

from bamquery.engine.cuda.casts.cast import cast
from bamquery.engine.cuda.kernels import (
    FLOAT64,
    INT64,
    INT128,
    Implementation,
    Kernels,
    Operand,
    argument_rows,
    view_as,
)
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.numeric import decimals
from bamquery.engine.cuda.numeric.integers import Integers
from bamquery.engine.cuda.vectors import Vector

_SPLITTER: Final = float((1 << 27) + 1)
"""Splits a double into two halves of 26 bits."""
_PAST_WORDS: Final = float(1 << 63)
"""What doubles make of the last 512 integers of 64 bits."""


def interpolate(
    kernels: Kernels, low: plc.Column, high: plc.Column, share: Vector, kind: pa.DataType
) -> plc.Column:
    """Values of a type between two others, `share` (from 0 to 1) of the way; null where one of them is."""
    if isinstance(kind, pa.Decimal128Type):
        return _interpolate_decimals(kernels, low, high, share, kind)
    if not pa.types.is_temporal(kind):
        below, above = (Vector(kernels, kernels.convert(side, FLOAT64)) for side in (low, high))
        result = _weighted_sum(below, above, share)
        return cast(kernels, Operand(pa.float64(), result.column), kind, try_=False)
    return _between_moments(kernels, low, high, share, kind)


def _between_moments(
    kernels: Kernels, low: plc.Column, high: plc.Column, share: Vector, kind: pa.DataType
) -> plc.Column:
    """Halves away from zero."""
    least, most = (Vector(kernels, Integers.from_column(kernels, side).column) for side in (low, high))
    below, above = least.cast(FLOAT64), most.cast(FLOAT64)
    result = _multiply_add(below, share * -1.0 + 1.0, above * share)
    size = Vector(kernels, kernels.unary(UnaryOperator.ABS, result.column))
    floor = Vector(kernels, kernels.unary(UnaryOperator.FLOOR, size.column))
    # Not `floor(size + 0.5)`: from 2^52 on that sum is another whole number.
    size = (size - floor >= 0.5).choose(floor + 1.0, floor)
    rounded = (result < 0.0).choose(size * -1.0, size).cast(INT64)
    rounded = (result >= _PAST_WORDS).choose(least.maximum(most), rounded)
    rounded = (result <= -_PAST_WORDS).choose(least.minimum(most), rounded)
    # Whole places stay as they are, since doubles do not hold all of them.
    return _to_stored_type(kernels, share.equals(0.0).choose(least, rounded).column, device_type(kind))


def _interpolate_decimals(
    kernels: Kernels, low: plc.Column, high: plc.Column, share: Vector, kind: pa.DataType
) -> plc.Column:
    """Cut off at the scale."""
    whole, other = (
        Vector(kernels, kernels.convert(decimals.unscaled_values(side), INT64)) for side in (low, high)
    )
    below, above = whole.cast(FLOAT64), other.cast(FLOAT64)
    # A value itself stays as it is: doubles do not hold all of them.
    units = share.equals(0.0).choose(whole, _multiply_add(share, above - below, below).cast(INT64))
    return view_as(kernels.convert(units.column, INT128), device_type(kind))


def _to_stored_type(kernels: Kernels, whole: plc.Column, kind: plc.DataType) -> plc.Column:
    """Whole numbers as the dates, times or timestamps that are stored so."""
    if kind.id() == TypeId.TIMESTAMP_DAYS:
        whole = kernels.convert(whole, plc.DataType(TypeId.INT32))
    return whole if kind.id() == TypeId.INT64 else view_as(whole, kind)


def _weighted_sum(below: Vector, above: Vector, share: Vector) -> Vector:
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


def _interpolate(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    rows = argument_rows(arguments)
    low, high, share = (kernels.column(argument.datum, rows) for argument in arguments)
    return interpolate(kernels, low, high, Vector(kernels, share), kind)


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType({"interpolate": _interpolate})
