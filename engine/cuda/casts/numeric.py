"""Casts between booleans, integers, floats and decimals.

Floats become integers, HUGEINT too, half to even, decimals half away from zero, floats become decimals half
away from zero after scaling in binary: as DuckDB does each.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator
from pylibcudf.unary import UnaryOperator

from bamquery.data_types.type_groups import HUGEINT, integer_range
from bamquery.engine.cuda.casts.outcome import Outcome
from bamquery.engine.cuda.kernels import BOOL, FLOAT64, INT64, INT128, UINT64, Kernels, Side, view_as
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.numeric import decimals
from bamquery.engine.cuda.numeric.rounding import half_away_from_zero, is_finite

_DOUBLE: Any = pa.float64()
_EXACT_DIGITS = 18
"""Digits of decimals that 64 bits hold."""


def from_boolean(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """False is 0, true is 1."""
    if pa.types.is_decimal(kind):
        return integer_to_decimal(kernels, kernels.convert(column, INT64), pa.int64(), kind)
    return Outcome(kernels.convert(column, device_type(kind)))


def to_boolean(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """Whatever is not 0 is true, NaN included."""
    if pa.types.is_decimal(own):
        zero, column = decimals.integer(kernels, 0), decimals.unscaled_values(column)
    else:
        zero = kernels.number(0, own)
    return Outcome(kernels.test(BinaryOperator.NOT_EQUAL, column, zero))


def _outside_type(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> plc.Column | None:
    """Where integers of one type are no integers of another."""
    low, high = integer_range(kind)
    own_low, own_high = integer_range(own)
    failed = None
    if low > own_low:
        failed = kernels.test(BinaryOperator.LESS, column, kernels.number(low, own))
    if high < own_high:
        above = kernels.test(BinaryOperator.GREATER, column, kernels.number(high, own))
        failed = above if failed is None else kernels.logical_or(failed, above)
    return None if failed is None else kernels.fill_null(failed)


def integer_to_integer(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """Fails out of range."""
    failed = _outside_type(kernels, column, own, kind)
    return Outcome(kernels.convert(column, device_type(kind)), failed)


def integer_to_float(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """The nearest float."""
    return Outcome(kernels.convert(column, device_type(kind)))


def decimal_to_float(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """The unscaled value, which is exact up to 2**53, divided once; beyond that the last bit may differ."""
    whole = decimals.unscaled_values(column)
    if own.precision <= _EXACT_DIGITS:
        doubles = kernels.convert(kernels.convert(whole, INT64), FLOAT64)
    elif own.scale:
        doubles = kernels.convert(whole, FLOAT64)
    else:
        doubles = _whole_doubles(kernels, whole)
    if own.scale:
        unit = kernels.number(10.0**own.scale, _DOUBLE)
        doubles = kernels.binary(BinaryOperator.DIV, doubles, unit, FLOAT64)
    return Outcome(kernels.convert(doubles, device_type(kind)))


def _whole_doubles(kernels: Kernels, whole: plc.Column) -> plc.Column:
    """Integers of 128 bits, rounded half by half, as DuckDB does."""

    def double(values: plc.Column, kind: plc.DataType) -> plc.Column:
        return kernels.convert(kernels.convert(values, kind), FLOAT64)

    def less(a: Side, b: Side) -> plc.Column:
        return kernels.binary(BinaryOperator.SUB, a, b, INT128)

    zero, one, shift = (decimals.integer(kernels, value) for value in (0, 1, 2**64))
    high, low = decimals.quotient(kernels, whole, shift), decimals.remainder(kernels, whole, shift)
    borrowed = kernels.test(BinaryOperator.LESS, low, zero)
    high = kernels.where(borrowed, less(high, one), high)
    low = kernels.where(borrowed, kernels.binary(BinaryOperator.ADD, low, shift, INT128), low)
    upper = _double(kernels, BinaryOperator.MUL, double(high, INT64), kernels.number(2.0**64, _DOUBLE))
    halves = _double(kernels, BinaryOperator.ADD, double(low, UINT64), upper)
    # Next to 0 the halves of a negative number would cancel.
    minus_one = decimals.integer(kernels, -1)
    rest = double(less(minus_one, whole), UINT64)
    near = _double(kernels, BinaryOperator.SUB, kernels.number(-1.0, _DOUBLE), rest)
    return kernels.where(kernels.test(BinaryOperator.EQUAL, high, minus_one), near, halves)


def float_to_float(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """Fails where a finite number would become infinite."""
    narrowed = kernels.convert(column, device_type(kind))
    if own.bit_width <= kind.bit_width:
        return Outcome(narrowed)
    still = is_finite(kernels, kernels.convert(narrowed, FLOAT64))
    failed = kernels.logical_and(is_finite(kernels, column), kernels.invert(still))
    return Outcome(narrowed, kernels.fill_null(failed))


def float_to_integer(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """Nearest integer, half to even; fails out of range and for NaN."""
    low, high = integer_range(kind)
    rounded = kernels.unary(UnaryOperator.RINT, kernels.convert(column, FLOAT64))
    # The bounds below are exact as floats: `high` itself is not, with 64 bits.
    fits = kernels.logical_and(
        kernels.test(BinaryOperator.GREATER_EQUAL, rounded, kernels.number(float(low), _DOUBLE)),
        kernels.test(BinaryOperator.LESS, rounded, kernels.number(float(high + 1), _DOUBLE)),
    )
    stored = _zero_unless(kernels, fits, rounded)
    failed = kernels.fill_null(kernels.invert(fits))
    return Outcome(kernels.convert(stored, device_type(kind)), failed)


def _zero_unless(kernels: Kernels, fits: plc.Column, values: plc.Column) -> plc.Column:
    """Doubles where they fit, 0 where they do not, null where they are null."""
    zeros = kernels.where(kernels.fill_null(fits), values, kernels.number(0.0, _DOUBLE))
    if not values.null_count():
        return zeros
    return kernels.where(kernels.is_valid(values), zeros, kernels.null(_DOUBLE))


def integer_to_decimal(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """Fails where the integer has more digits than the type keeps before the point."""
    return _fit_precision(kernels, kernels.convert(column, INT128), 0, 20, kind)


def decimal_to_integer(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """Nearest integer, half away from zero; fails out of range."""
    whole = decimals.rounded_quotient(kernels, decimals.unscaled_values(column), own.scale)
    low, high = (decimals.integer(kernels, bound) for bound in integer_range(kind))
    failed = kernels.logical_or(
        kernels.test(BinaryOperator.LESS, whole, low), kernels.test(BinaryOperator.GREATER, whole, high)
    )
    return Outcome(kernels.convert(whole, device_type(kind)), kernels.fill_null(failed))


def decimal_to_decimal(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """Rounded half away from zero to the new scale; fails where it has too many digits."""
    whole = decimals.unscaled_values(column)
    if kind.scale >= own.scale:
        return _fit_precision(kernels, whole, own.scale, own.precision, kind)
    rounded = decimals.rounded_quotient(kernels, whole, own.scale - kind.scale)
    digits = own.precision - (own.scale - kind.scale) + 1  # rounding may add one
    return _fit_precision(kernels, rounded, kind.scale, digits, kind)


def _fit_precision(kernels: Kernels, whole: plc.Column, scale: int, digits: int, kind: Any) -> Outcome:
    """Unscaled decimals of at most so many digits and no larger scale than the type's, in it."""
    added = kind.scale - scale
    failed = None
    if digits + added > kind.precision:
        failed = kernels.fill_null(decimals.too_long(kernels, whole, max(kind.precision - added, 0)))
    if added == 38:  # the factor has 39 digits itself, and no digit but 0 is left
        whole = kernels.binary(BinaryOperator.MUL, whole, decimals.integer(kernels, 0), INT128)
    else:
        whole = decimals.times_power(kernels, whole, added)
    return Outcome(view_as(whole, device_type(kind)), failed)


def float_to_decimal(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """Scaled, then rounded half away from zero; fails for what has too many digits, infinity and NaN.

    HUGEINT is rounded as integers are.
    """
    unit = kernels.number(10.0**kind.scale, _DOUBLE)
    scaled = kernels.binary(BinaryOperator.MUL, kernels.convert(column, FLOAT64), unit, FLOAT64)
    if kind == HUGEINT:
        scaled = kernels.unary(UnaryOperator.RINT, scaled)
    else:
        scaled = half_away_from_zero(kernels, scaled)
    magnitude = kernels.unary(UnaryOperator.ABS, scaled)
    fits = kernels.test(BinaryOperator.LESS, magnitude, kernels.number(10.0**kind.precision, _DOUBLE))
    stored = _zero_unless(kernels, fits, scaled)
    return Outcome(
        view_as(_wide(kernels, stored), device_type(kind)), kernels.fill_null(kernels.invert(fits))
    )


def _wide(kernels: Kernels, values: plc.Column) -> plc.Column:
    """Whole doubles as 128-bit integers; nothing is rounded, since each step drops or keeps bits."""
    shift = kernels.number(2.0**64, _DOUBLE)
    magnitude = kernels.unary(UnaryOperator.ABS, values)
    high = kernels.unary(UnaryOperator.FLOOR, _double(kernels, BinaryOperator.DIV, magnitude, shift))
    low = _double(kernels, BinaryOperator.SUB, magnitude, _double(kernels, BinaryOperator.MUL, high, shift))
    words = [kernels.convert(kernels.convert(part, UINT64), INT128) for part in (low, high)]
    upper = kernels.binary(BinaryOperator.MUL, words[1], decimals.integer(kernels, 2**64), INT128)
    whole = kernels.binary(BinaryOperator.ADD, words[0], upper, INT128)
    negative = kernels.binary(BinaryOperator.LESS, values, kernels.number(0.0, _DOUBLE), BOOL)
    return kernels.where(negative, decimals.negate(kernels, whole), whole)


def _double(kernels: Kernels, operator: BinaryOperator, a: Side, b: Side) -> plc.Column:
    return kernels.binary(operator, a, b, FLOAT64)
