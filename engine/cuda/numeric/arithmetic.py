"""Arithmetic on integers and floats; decimals have their own file.

Integer overflow raises ExecutionError with the values; floats follow IEEE 754.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator
from pylibcudf.unary import UnaryOperator

from bamquery.data_types.type_groups import integer_range
from bamquery.engine.cuda.kernels import (
    FLOAT64,
    INT64,
    UINT64,
    Implementation,
    Kernels,
    Operand,
    Side,
    argument_rows,
)
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.numeric import decimals
from bamquery.engine.cuda.value_errors import fail_call

_OPERATORS: Final[Mapping[str, BinaryOperator]] = MappingProxyType(
    {"add": BinaryOperator.ADD, "subtract": BinaryOperator.SUB, "multiply": BinaryOperator.MUL}
)


def _sides(kernels: Kernels, arguments: Sequence[Operand]) -> list[Side]:
    return [kernels.side(argument.datum) for argument in arguments]


def _exact_on_decimals(name: str, on_decimals: Implementation) -> Implementation:
    def apply(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
        if pa.types.is_decimal(kind):
            return on_decimals(kernels, arguments, kind)
        if pa.types.is_floating(kind):
            a, b = _sides(kernels, arguments)
            return kernels.binary(_OPERATORS[name], a, b, device_type(kind))
        return _compute_checked(kernels, name, arguments, kind)

    return apply


def _compute_checked(
    kernels: Kernels, name: str, arguments: Sequence[Operand], kind: pa.DataType
) -> plc.Column:
    """Computed in 64 bits: all of narrower integers fits there, and overflow of 64 is found in the signs."""
    wide = UINT64 if pa.types.is_unsigned_integer(kind) and name == "multiply" else INT64
    if kind.bit_width == 64:
        wide = device_type(kind)
    rows = argument_rows(arguments)
    a, b = (kernels.convert(kernels.column(argument.datum, rows), wide) for argument in arguments)
    result = kernels.binary(_OPERATORS[name], a, b, wide)
    low, high = integer_range(kind)
    if kind.bit_width == 64:
        ends = [kernels.extremes(side) for side in (a, b)]
        fits = low <= _least(name, *ends) and _greatest(name, *ends) <= high
    else:
        least, greatest = kernels.extremes(result)
        fits = low <= least and greatest <= high
    if fits:
        return kernels.convert(result, device_type(kind))
    if kind.bit_width < 64:
        bounds = pa.uint64() if wide.id() == UINT64.id() else pa.int64()
        failed = kernels.logical_or(
            kernels.test(BinaryOperator.LESS, result, kernels.number(low, bounds)),
            kernels.test(BinaryOperator.GREATER, result, kernels.number(high, bounds)),
        )
    elif pa.types.is_unsigned_integer(kind):
        failed = _wrapped_unsigned(kernels, name, a, b, result)
    else:
        failed = _wrapped_signed(kernels, name, a, b, result)
    if kernels.any_true(failed):
        fail_call(kernels, name, arguments, kind, failed)
    return kernels.convert(result, device_type(kind))


def _least(name: str, a: tuple[int, int], b: tuple[int, int]) -> int:
    if name == "multiply":
        return min(x * y for x in a for y in b)
    return a[0] + b[0] if name == "add" else a[0] - b[1]


def _greatest(name: str, a: tuple[int, int], b: tuple[int, int]) -> int:
    if name == "multiply":
        return max(x * y for x in a for y in b)
    return a[1] + b[1] if name == "add" else a[1] - b[0]


def _wrapped_unsigned(
    kernels: Kernels, name: str, a: plc.Column, b: plc.Column, result: plc.Column
) -> plc.Column:
    if name == "add":
        return kernels.test(BinaryOperator.LESS, result, a)
    if name == "subtract":
        return kernels.test(BinaryOperator.LESS, a, b)
    return _wrapped_product(kernels, a, b, result, pa.uint64())


def _wrapped_signed(
    kernels: Kernels, name: str, a: plc.Column, b: plc.Column, result: plc.Column
) -> plc.Column:
    """A sum that wrapped has neither addend's sign; a difference not the minuend's, though signs differed."""
    if name == "multiply":
        least = kernels.number(integer_range(pa.int64())[0])
        minus_one = kernels.number(-1)
        negated = kernels.logical_and(
            kernels.test(BinaryOperator.EQUAL, a, minus_one), kernels.test(BinaryOperator.EQUAL, b, least)
        )
        return kernels.logical_or(_wrapped_product(kernels, a, b, result, pa.int64()), negated)

    def differ(x: plc.Column, y: plc.Column) -> plc.Column:
        return kernels.binary(BinaryOperator.BITWISE_XOR, x, y, INT64)

    other = differ(b, result) if name == "add" else differ(a, b)
    signs = kernels.binary(BinaryOperator.BITWISE_AND, differ(a, result), other, INT64)
    return kernels.test(BinaryOperator.LESS, signs, kernels.number(0))


def _wrapped_product(
    kernels: Kernels, a: plc.Column, b: plc.Column, result: plc.Column, kind: pa.DataType
) -> plc.Column:
    zero, one = kernels.number(0, kind), kernels.number(1, kind)
    nonzero = kernels.test(BinaryOperator.NOT_EQUAL, a, zero)
    back = kernels.binary(BinaryOperator.DIV, result, kernels.where(nonzero, a, one), device_type(kind))
    return kernels.logical_and(nonzero, kernels.test(BinaryOperator.NOT_EQUAL, back, b))


def _null_at_zero_divisor(name: str, operator: BinaryOperator, on_decimals: Implementation) -> Implementation:
    """Null where the divisor is zero; the least number by -1 does not fit, for the remainder neither."""

    def apply(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
        if pa.types.is_decimal(kind):
            return on_decimals(kernels, arguments, kind)
        rows, width = argument_rows(arguments), device_type(kind)
        dividend, divisor = (kernels.column(argument.datum, rows) for argument in arguments)
        if pa.types.is_floating(kind) and operator == BinaryOperator.MOD:
            return kernels.binary(operator, dividend, divisor, width)
        known = kernels.test(BinaryOperator.NOT_EQUAL, divisor, kernels.number(0, kind))
        if pa.types.is_floating(kind):  # DuckDB's // does not truncate floats
            result = kernels.binary(operator, dividend, divisor, width)
            return kernels.where(kernels.fill_null(known), result, kernels.null(kind))
        low, _ = integer_range(kind)
        if low < 0:
            failed = kernels.logical_and(
                kernels.test(BinaryOperator.EQUAL, dividend, kernels.number(low, kind)),
                kernels.test(BinaryOperator.EQUAL, divisor, kernels.number(-1, kind)),
            )
            if kernels.any_true(failed):
                fail_call(kernels, name, arguments, kind, failed)
        by = kernels.where(known, divisor, kernels.null(kind))
        by = kernels.fill_null(by, kernels.number(1, kind))  # nothing is divided by zero, not even in vain
        result = kernels.binary(operator, dividend, by, width)
        return kernels.where(kernels.fill_null(known), result, kernels.null(kind))

    return apply


def _negate(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    column = kernels.column(arguments[0].datum, argument_rows(arguments))
    if pa.types.is_unsigned_integer(kind):
        failed = kernels.test(BinaryOperator.GREATER, column, kernels.number(0, kind))
        if kernels.any_true(failed):
            fail_call(kernels, "negate", arguments, kind, failed)
        return column
    if pa.types.is_integer(kind):
        _refuse_least(kernels, "negate", arguments, kind)
        return kernels.binary(BinaryOperator.SUB, kernels.number(0, kind), column, device_type(kind))
    if pa.types.is_decimal(kind):
        return decimals.negate(kernels, column)
    minus_one = kernels.number(-1.0, kind)  # 0 - x would lose the sign of zero
    return kernels.binary(BinaryOperator.MUL, column, minus_one, device_type(kind))


def _abs(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    column = kernels.column(arguments[0].datum, argument_rows(arguments))
    if pa.types.is_unsigned_integer(kind):
        return column
    if pa.types.is_decimal(kind):
        return decimals.absolute(kernels, column)
    if pa.types.is_integer(kind):
        _refuse_least(kernels, "abs", arguments, kind)
    return kernels.unary(UnaryOperator.ABS, column)


def _refuse_least(kernels: Kernels, name: str, arguments: Sequence[Operand], kind: pa.DataType) -> None:
    least = kernels.number(integer_range(kind)[0], kind)
    column = kernels.column(arguments[0].datum, argument_rows(arguments))
    failed = kernels.test(BinaryOperator.EQUAL, column, least)
    if kernels.any_true(failed):
        fail_call(kernels, name, arguments, kind, failed)


def _float_pair(operator: BinaryOperator) -> Implementation:
    def apply(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
        a, b = _sides(kernels, arguments)
        return kernels.binary(operator, a, b, FLOAT64)

    return apply


def _float_function(operator: UnaryOperator) -> Implementation:
    def apply(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
        return kernels.unary(operator, kernels.column(arguments[0].datum, argument_rows(arguments)))

    return apply


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "add": _exact_on_decimals("add", decimals.add),
        "subtract": _exact_on_decimals("subtract", decimals.subtract),
        "multiply": _exact_on_decimals("multiply", decimals.multiply),
        "divide": _float_pair(BinaryOperator.DIV),
        "floor_divide": _null_at_zero_divisor("floor_divide", BinaryOperator.DIV, decimals.floor_divide),
        "modulo": _null_at_zero_divisor("modulo", BinaryOperator.MOD, decimals.modulo),
        "negate": _negate,
        "abs": _abs,
        "sqrt": _float_function(UnaryOperator.SQRT),
        "ln": _float_function(UnaryOperator.LOG),
        "exp": _float_function(UnaryOperator.EXP),
        "power": _float_pair(BinaryOperator.POW),
    }
)
