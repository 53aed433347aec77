"""Exact decimal arithmetic: libcudf's decimals without a fraction serve as integers of 128 bits.

A decimal128 has at most 38 digits, so its unscaled value is below 10**38, and 2**127 is 1.7 times that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator
from pylibcudf.unary import UnaryOperator

from bamquery.engine.cuda.kernels import INT128, Kernels, Operand, Side, argument_rows, view_as
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.value_errors import fail_call

_WHOLE: Any = pa.decimal128(38, 0)


def unscaled_values(column: plc.Column) -> plc.Column:
    """A decimal column's stored integers, without a copy."""
    return view_as(column, INT128)


def integer(kernels: Kernels, value: int) -> plc.Scalar:
    """A 128-bit integer of at most 38 digits."""
    constant: Any = pa.scalar(Decimal(value), _WHOLE)
    return kernels.scalar(constant)


def _operands(kernels: Kernels, arguments: Sequence[Operand]) -> list[plc.Column]:
    rows = argument_rows(arguments)
    return [unscaled_values(kernels.column(argument.datum, rows)) for argument in arguments]


def largest(kernels: Kernels, whole: plc.Column) -> int:
    """The largest of a column of 128-bit integers, whatever its sign; the host waits."""
    low, high = kernels.extremes(whole)
    return max(-low, high)


def too_long(kernels: Kernels, whole: plc.Column, digits: int) -> plc.Column:
    """Whether a 128-bit integer has more digits."""
    most = 10**digits - 1
    return kernels.logical_or(
        kernels.test(BinaryOperator.GREATER, whole, integer(kernels, most)),
        kernels.test(BinaryOperator.LESS, whole, integer(kernels, -most)),
    )


def _negative(kernels: Kernels, whole: plc.Column) -> plc.Column:
    return kernels.test(BinaryOperator.LESS, whole, integer(kernels, 0))


def _same_scale(
    kernels: Kernels, name: str, arguments: Sequence[Operand], kind: Any, *, subtract: bool
) -> plc.Column:
    a, b = _operands(kernels, arguments)
    result = kernels.binary(BinaryOperator.SUB if subtract else BinaryOperator.ADD, a, b, INT128)
    if kind.precision < 38:  # nothing has wrapped
        fits = largest(kernels, result) < 10**kind.precision
    else:
        fits = largest(kernels, a) + largest(kernels, b) < 10**38
    if fits:
        return view_as(result, device_type(kind))
    failed = too_long(kernels, result, kind.precision)
    if kind.precision == 38:
        # Two of 38 digits can pass 2**127: then the sum has the sign that neither addend has.
        signs = [_negative(kernels, part) for part in (a, b, result)]
        alike = kernels.test(
            BinaryOperator.NOT_EQUAL if subtract else BinaryOperator.EQUAL, signs[0], signs[1]
        )
        wrapped = kernels.logical_and(alike, kernels.test(BinaryOperator.NOT_EQUAL, signs[0], signs[2]))
        failed = kernels.logical_or(failed, wrapped)
    if kernels.any_true(failed):
        fail_call(kernels, name, arguments, kind, failed)
    return view_as(result, device_type(kind))


def add(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    """The exact sum; both arguments have the result's scale.

    Raises:
        ExecutionError: it has more digits than the type.
    """
    return _same_scale(kernels, "add", arguments, kind, subtract=False)


def subtract(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    """The exact difference; both arguments have the result's scale.

    Raises:
        ExecutionError: it has more digits than the type.
    """
    return _same_scale(kernels, "subtract", arguments, kind, subtract=True)


def product_failed(kernels: Kernels, a: plc.Column, b: plc.Column, product: plc.Column) -> plc.Column:
    """Whether a product of 128-bit integers has wrapped: divided by a factor, it does not give the other."""
    nonzero = kernels.test(BinaryOperator.NOT_EQUAL, a, integer(kernels, 0))
    divisor = kernels.where(nonzero, a, integer(kernels, 1))
    back = kernels.binary(BinaryOperator.DIV, product, divisor, INT128)
    return kernels.logical_and(nonzero, kernels.test(BinaryOperator.NOT_EQUAL, back, b))


def multiply(kernels: Kernels, arguments: Sequence[Operand], kind: Any) -> plc.Column:
    """The exact product.

    Raises:
        ExecutionError: it has more digits than the type.
    """
    a, b = _operands(kernels, arguments)
    result = kernels.binary(BinaryOperator.MUL, a, b, INT128)
    digits = sum(_precision(argument.kind) for argument in arguments)
    if digits > kind.precision and largest(kernels, a) * largest(kernels, b) >= 10**kind.precision:
        failed = too_long(kernels, result, kind.precision)
        if digits > 38:
            failed = kernels.logical_or(failed, product_failed(kernels, a, b, result))
        if kernels.any_true(failed):
            fail_call(kernels, "multiply", arguments, kind, failed)
    return view_as(result, device_type(kind))


def _precision(kind: Any) -> int:
    return int(kind.precision)


def modulo(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    """Remainder with the dividend's sign, null where the divisor is zero; both arguments have the type."""
    return _null_at_zero_divisor(kernels, remainder, arguments, kind)


def floor_divide(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    """Quotient of whole numbers (scale 0) toward zero, null where the divisor is zero."""
    return _null_at_zero_divisor(kernels, quotient, arguments, kind)


def quotient(kernels: Kernels, whole: plc.Column, divisor: Side) -> plc.Column:
    """Of 128-bit integers, toward zero; the divisor is not zero."""
    return kernels.binary(BinaryOperator.DIV, whole, divisor, INT128)


def remainder(kernels: Kernels, whole: plc.Column, divisor: Side) -> plc.Column:
    """Of 128-bit integers, with the sign of the first; the divisor is not zero."""
    back = kernels.binary(BinaryOperator.MUL, quotient(kernels, whole, divisor), divisor, INT128)
    return kernels.binary(BinaryOperator.SUB, whole, back, INT128)


def _null_at_zero_divisor(
    kernels: Kernels,
    operation: Callable[[Kernels, plc.Column, Side], plc.Column],
    arguments: Sequence[Operand],
    kind: pa.DataType,
) -> plc.Column:
    dividend, divisor = _operands(kernels, arguments)
    known = kernels.fill_null(kernels.test(BinaryOperator.NOT_EQUAL, divisor, integer(kernels, 0)))
    by = kernels.where(known, divisor, integer(kernels, 1))
    result = view_as(operation(kernels, dividend, by), device_type(kind))
    return kernels.where(known, result, kernels.null(kind))


def negate(kernels: Kernels, column: plc.Column) -> plc.Column:
    """-a; always fits."""
    zero = integer(kernels, 0)
    return view_as(kernels.binary(BinaryOperator.SUB, zero, unscaled_values(column), INT128), column.type())


def absolute(kernels: Kernels, column: plc.Column) -> plc.Column:
    """|a|; always fits."""
    return view_as(kernels.unary(UnaryOperator.ABS, unscaled_values(column)), column.type())


def rounded_quotient(kernels: Kernels, whole: plc.Column, digits: int) -> plc.Column:
    """128-bit integers of at most 38 digits divided by 10**digits, halves away from zero."""
    if digits <= 0:
        return whole
    if digits > 38:
        return kernels.binary(BinaryOperator.MUL, whole, integer(kernels, 0), INT128)
    half = 5 * 10 ** (digits - 1)
    halves = kernels.where(_negative(kernels, whole), integer(kernels, -half), integer(kernels, half))
    shifted = kernels.binary(BinaryOperator.ADD, whole, halves, INT128)
    if digits == 38:  # the divisor has 39 digits itself: in two steps toward zero
        tenth = kernels.binary(BinaryOperator.DIV, shifted, integer(kernels, 10), INT128)
        return kernels.binary(BinaryOperator.DIV, tenth, integer(kernels, 10**37), INT128)
    return kernels.binary(BinaryOperator.DIV, shifted, integer(kernels, 10**digits), INT128)


def times_power(kernels: Kernels, whole: plc.Column, digits: int) -> plc.Column:
    """128-bit integers times 10**digits, 0 to 37; wraps what does not fit."""
    if not digits:
        return whole
    return kernels.binary(BinaryOperator.MUL, whole, integer(kernels, 10**digits), INT128)
