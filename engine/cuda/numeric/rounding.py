"""round, floor and ceil. `round` goes half away from zero, in DuckDB's way for floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator
from pylibcudf.unary import UnaryOperator

from bamquery.data_types.type_groups import integer_range
from bamquery.engine.cuda.kernels import (
    BOOL,
    FLOAT64,
    INT64,
    INT128,
    Implementation,
    Kernels,
    Operand,
    Side,
    argument_rows,
    view_as,
)
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.numeric import decimals
from bamquery.engine.cuda.value_errors import fail_call

_DOUBLE: Any = pa.float64()
_MOST_DIGITS: Final = 400
"""10.0**400 is infinite, and beyond it nothing changes."""


def half_away_from_zero(kernels: Kernels, values: plc.Column) -> plc.Column:
    """Nearest whole double; adding 0.5 instead would turn 0.49999999999999994 into 1."""
    magnitude = kernels.unary(UnaryOperator.ABS, values)
    whole = kernels.unary(UnaryOperator.FLOOR, magnitude)
    fraction = _double(kernels, BinaryOperator.SUB, magnitude, whole)
    up = kernels.test(BinaryOperator.GREATER_EQUAL, fraction, kernels.number(0.5, _DOUBLE))
    rounded = _double(kernels, BinaryOperator.ADD, whole, kernels.convert(up, FLOAT64))
    negative = kernels.test(BinaryOperator.LESS, values, kernels.number(0.0, _DOUBLE))
    sign = kernels.where(negative, kernels.number(-1.0, _DOUBLE), kernels.number(1.0, _DOUBLE))
    return _double(kernels, BinaryOperator.MUL, rounded, sign)


def is_finite(kernels: Kernels, values: plc.Column) -> plc.Column:
    """Whether doubles are neither infinite nor NaN: then they differ from themselves by 0."""
    difference = _double(kernels, BinaryOperator.SUB, values, values)
    return kernels.test(BinaryOperator.EQUAL, difference, kernels.number(0.0, _DOUBLE))


def _double(kernels: Kernels, operator: BinaryOperator, a: Side, b: Side) -> plc.Column:
    return kernels.binary(operator, a, b, FLOAT64)


def _round_floats(kernels: Kernels, column: plc.Column, digits: int, kind: pa.DataType) -> plc.Column:
    values = kernels.convert(column, FLOAT64)
    size = min(abs(digits), _MOST_DIGITS)
    infinite = size > 308
    unit = kernels.number(float("inf") if infinite else 10.0**size, _DOUBLE)
    there, back = BinaryOperator.MUL, BinaryOperator.DIV
    if digits < 0:
        there, back = back, there
    scaled = half_away_from_zero(kernels, _double(kernels, there, values, unit))
    rounded = _double(kernels, back, scaled, unit)
    otherwise: Side = kernels.number(0.0, _DOUBLE) if digits < 0 and infinite else values
    finite = kernels.fill_null(is_finite(kernels, rounded))
    chosen = kernels.where(finite, rounded, otherwise)
    if column.null_count():
        chosen = kernels.where(kernels.is_valid(column), chosen, kernels.null(_DOUBLE))
    return kernels.convert(chosen, device_type(kind))


def _round_integers(
    kernels: Kernels, arguments: Sequence[Operand], column: plc.Column, digits: int, kind: pa.DataType
) -> plc.Column:
    # In 128 bits: a 64-bit integer may round to more than it holds.
    places = min(-digits, 20)
    whole = kernels.convert(column, INT128)
    rounded = decimals.times_power(kernels, decimals.rounded_quotient(kernels, whole, places), places)
    low, high = integer_range(kind)
    failed = kernels.logical_or(
        kernels.test(BinaryOperator.LESS, rounded, decimals.integer(kernels, low)),
        kernels.test(BinaryOperator.GREATER, rounded, decimals.integer(kernels, high)),
    )
    if kernels.any_true(failed):
        fail_call(kernels, "round", arguments, kind, failed)
    return kernels.convert(rounded, device_type(kind))


def _round_decimals(
    kernels: Kernels, arguments: Sequence[Operand], column: plc.Column, digits: int, kind: Any
) -> plc.Column:
    scale = -column.type().scale()
    whole = decimals.unscaled_values(column)
    dropped = scale - digits
    rounded = decimals.rounded_quotient(kernels, whole, dropped) if dropped > 0 else whole
    if dropped > 0 and digits < 0 and dropped <= 38:
        # At most 10 in the place before the first digit; what the zeros add is looked at before.
        fits = kind.precision + digits
        failed = decimals.too_long(kernels, rounded, max(fits, 0))
        if kernels.any_true(failed):
            fail_call(kernels, "round", arguments, kind, failed)
        rounded = decimals.times_power(kernels, rounded, min(-digits, 37))
    elif dropped > 0:
        failed = decimals.too_long(kernels, rounded, kind.precision)
        if kernels.any_true(failed):
            fail_call(kernels, "round", arguments, kind, failed)
    return view_as(rounded, device_type(kind))


def _round(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    column = kernels.column(arguments[0].datum, argument_rows(arguments))
    digits = arguments[1].literal if len(arguments) > 1 else 0
    if digits is None:
        return kernels.nulls(column.size(), kind)
    if pa.types.is_integer(kind):
        return column if digits >= 0 else _round_integers(kernels, arguments, column, digits, kind)
    if pa.types.is_floating(kind):
        return _round_floats(kernels, column, digits, kind)
    return _round_decimals(kernels, arguments, column, digits, kind)


def _round_toward(operator: UnaryOperator, *, up: bool) -> Implementation:
    def apply(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
        column = kernels.column(arguments[0].datum, argument_rows(arguments))
        if pa.types.is_integer(kind):
            return column
        if not pa.types.is_decimal(kind):
            return kernels.unary(operator, column)
        return view_as(_whole_decimals(kernels, column, up=up), device_type(kind))

    return apply


def _whole_decimals(kernels: Kernels, column: plc.Column, *, up: bool) -> plc.Column:
    """The quotient toward zero, and one more, or less, where a rest points that way."""
    scale = -column.type().scale()
    whole = decimals.unscaled_values(column)
    if not scale:
        return whole
    if scale == 38:
        return _step(
            kernels, kernels.binary(BinaryOperator.MUL, whole, _zero_scalar(kernels), INT128), whole, up=up
        )
    unit = decimals.integer(kernels, 10**scale)
    quotient = decimals.quotient(kernels, whole, unit)
    return _step(kernels, quotient, decimals.remainder(kernels, whole, unit), up=up)


def _step(kernels: Kernels, quotient: plc.Column, rest: plc.Column, *, up: bool) -> plc.Column:
    operator = BinaryOperator.GREATER if up else BinaryOperator.LESS
    moved = kernels.binary(operator, rest, _zero_scalar(kernels), BOOL)
    step = kernels.convert(kernels.convert(moved, INT64), INT128)
    return kernels.binary(BinaryOperator.ADD if up else BinaryOperator.SUB, quotient, step, INT128)


def _zero_scalar(kernels: Kernels) -> plc.Scalar:
    return decimals.integer(kernels, 0)


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "round": _round,
        "floor": _round_toward(UnaryOperator.FLOOR, up=False),
        "ceil": _round_toward(UnaryOperator.CEIL, up=True),
    }
)
