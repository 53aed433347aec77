"""Arithmetic on integers and floats; decimals have their own file.

Integer overflow raises ExecutionError with the values; floats follow IEEE 754.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bamquery.data_types.names import type_name
from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Implementation,
    any_true,
    as_column,
    compute,
    constant,
    from_values,
    null_where,
    operand,
    valid_rows,
)
from bamquery.engine.cpu.numeric import decimals
from bamquery.errors import ExecutionError


def integer_range(kind: pa.DataType) -> tuple[int, int]:
    """Least and greatest value of an integer type."""
    if pa.types.is_unsigned_integer(kind):
        return 0, 2**kind.bit_width - 1
    return -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1


def _overflow(
    operation: str, exact: Callable[..., int], arguments: Sequence[Datum], kind: pa.DataType
) -> ExecutionError:
    """The error for the first row whose exact result does not fit; only looked for once it is known."""
    low, high = integer_range(kind)
    rows = next(len(a) for a in arguments if isinstance(a, pa.Array))
    for values in zip(*(as_column(a, rows).to_pylist() for a in arguments), strict=True):
        if None not in values and not low <= exact(*values) <= high:
            written = operation.format(*values)
            return ExecutionError(f"{type_name(kind)} overflow: {written} does not fit {low} to {high}")
    return ExecutionError(f"{type_name(kind)} overflow in {operation.format(*'abc')}")


def _compute_checked(
    name: str, operation: str, exact: Callable[..., int], arguments: Sequence[Datum], kind: pa.DataType
) -> Column:
    try:
        return compute(f"{name}_checked", *arguments)
    except pa.ArrowInvalid:
        raise _overflow(operation, exact, arguments, kind) from None


def _exact_operation(
    name: str, symbol: str, exact: Callable[[Any, Any], Any], on_decimals: Implementation
) -> Implementation:
    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        if pa.types.is_decimal(kind):
            return on_decimals(arguments, kind)
        if pa.types.is_floating(kind):
            return compute(name, *arguments)
        return _compute_checked(name, f"{{}} {symbol} {{}}", exact, arguments, kind)

    return apply


def _null_where_zero(divisor: Datum) -> Datum:
    """The divisor, null where it is zero."""
    if isinstance(divisor, pa.Scalar):
        return constant(None, divisor.type) if divisor.as_py() == 0 else divisor
    zeros = compute("equal", divisor, constant(0, divisor.type))
    return null_where(zeros, divisor) if any_true(zeros) else divisor


def _truncated_quotient(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _floor_divide(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    if pa.types.is_decimal(kind):
        return decimals.floor_divide(arguments, kind)
    dividend, divisor = arguments[0], _null_where_zero(arguments[1])
    if pa.types.is_floating(kind):
        return compute("divide", dividend, divisor)  # DuckDB's // does not truncate floats
    return _compute_checked("divide", "{} // {}", _truncated_quotient, (dividend, divisor), kind)


def _modulo(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    if pa.types.is_decimal(kind):
        return decimals.modulo(arguments, kind)
    dividend, divisor = arguments
    if pa.types.is_floating(kind):
        with np.errstate(all="ignore"):
            return from_values(
                np.fmod(operand(dividend), operand(divisor)), kind, valid_rows(dividend, divisor)
            )
    divisor = _null_where_zero(divisor)
    low, _ = integer_range(kind)
    if low < 0:
        # The quotient of the least number and -1 does not fit, and DuckDB takes the remainder from it.
        _compute_checked("divide", "{} // {}", _truncated_quotient, (dividend, divisor), kind)
    by = operand(divisor)
    rows = next(len(a) for a in arguments if isinstance(a, pa.Array))
    remainder = np.fmod(operand(dividend), np.where(by == 0, by.dtype.type(1), by))
    return from_values(np.broadcast_to(remainder, rows), kind, valid_rows(dividend, divisor))


def _negate(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    if pa.types.is_unsigned_integer(kind):
        zero = constant(0, kind)
        try:
            return compute("subtract_checked", zero, arguments[0])
        except pa.ArrowInvalid:
            raise _overflow("-{}", operator.neg, arguments, kind) from None
    if pa.types.is_integer(kind):
        return _compute_checked("negate", "-{}", operator.neg, arguments, kind)
    return compute("negate", *arguments)


def _abs(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    if pa.types.is_integer(kind):
        return _compute_checked("abs", "abs({})", abs, arguments, kind)
    return compute("abs", *arguments)


def _kernel(name: str) -> Implementation:
    return lambda arguments, kind: compute(name, *arguments)


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "add": _exact_operation("add", "+", operator.add, decimals.add),
        "subtract": _exact_operation("subtract", "-", operator.sub, decimals.subtract),
        "multiply": _exact_operation("multiply", "*", operator.mul, decimals.multiply),
        "divide": _kernel("divide"),
        "floor_divide": _floor_divide,
        "modulo": _modulo,
        "negate": _negate,
        "abs": _abs,
        "sqrt": _kernel("sqrt"),
        "ln": _kernel("ln"),
        "exp": _kernel("exp"),
        "power": _kernel("power"),
    }
)
