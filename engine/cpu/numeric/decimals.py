"""Exact decimal arithmetic: in 128 bits, in 256 where an intermediate result needs more."""

from __future__ import annotations

import decimal
import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.data_types.names import type_name
from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Kind,
    as_column,
    boolean_column,
    compute,
    convert,
    valid_rows,
)
from bamquery.engine.cpu.numeric import small_decimals
from bamquery.errors import ExecutionError

EXACT: Final = decimal.Context(prec=80, rounding=decimal.ROUND_HALF_UP)
"""Enough digits for the product of two 38-digit numbers."""


def _rows(arguments: Sequence[Datum]) -> int:
    return next(len(a) for a in arguments if isinstance(a, pa.Array))


def _per_row(
    operation: Callable[[Decimal, Decimal], Decimal | None], arguments: Sequence[Datum], kind: pa.DataType
) -> Column:
    """Row by row in Python: for what Arrow's 256 bits cannot hold.

    Raises:
        pa.ArrowInvalid: a result does not fit.
    """
    rows = _rows(arguments)
    left, right = (as_column(argument, rows).to_pylist() for argument in arguments)
    with decimal.localcontext(EXACT):
        results = [
            None if a is None or b is None else operation(a, b) for a, b in zip(left, right, strict=True)
        ]
    return pa.array(results, kind)


def _overflow(
    symbol: str, exact: Callable[[Any, Any], Any], arguments: Sequence[Datum], kind: pa.DataType
) -> ExecutionError:
    assert isinstance(kind, pa.Decimal128Type)
    rows = _rows(arguments)
    bound = Decimal(10) ** (kind.precision - kind.scale)
    with decimal.localcontext(EXACT):
        for a, b in zip(*(as_column(argument, rows).to_pylist() for argument in arguments), strict=True):
            if a is not None and b is not None and abs(exact(a, b)) >= bound:
                return ExecutionError(f"{type_name(kind)} overflow: {a} {symbol} {b} has too many digits")
    return ExecutionError(f"{type_name(kind)} overflow in a {symbol} b")


def _widen(datum: Datum) -> Datum:
    kind = datum.type
    return convert(datum, pa.decimal256(kind.precision, kind.scale))


def _same_scale(name: str, symbol: str, exact: Callable[[Any, Any], Any]) -> Callable[..., Column]:
    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        small = small_decimals.arithmetic(name, arguments, kind)
        if small is not None:
            return small
        operands = arguments
        if any(argument.type.precision >= 38 for argument in arguments):
            operands = [_widen(argument) for argument in arguments]  # Arrow wants room for one more digit
        try:
            return convert(compute(name, *operands), kind)
        except pa.ArrowInvalid:
            raise _overflow(symbol, exact, arguments, kind) from None

    return apply


add: Final = _same_scale("add", "+", operator.add)
subtract: Final = _same_scale("subtract", "-", operator.sub)


def multiply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """The exact product.

    Raises:
        ExecutionError: it has more digits than the type.
    """
    small = small_decimals.arithmetic("multiply", arguments, kind)
    if small is not None:
        return small
    digits = sum(argument.type.precision for argument in arguments) + 1
    try:
        if digits <= 38:
            return convert(compute("multiply", *arguments), kind)
        if digits <= 76:
            return convert(compute("multiply", *(_widen(argument) for argument in arguments)), kind)
        return _per_row(operator.mul, arguments, kind)
    except pa.ArrowInvalid:
        raise _overflow("*", operator.mul, arguments, kind) from None


def modulo(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """Remainder with the dividend's sign, null where the divisor is zero; both arguments have the type."""
    return _null_at_zero_divisor(np.fmod, lambda a, b: a % b, arguments, kind)


def floor_divide(arguments: Sequence[Datum], kind: Kind) -> Column:
    """Quotient of whole numbers (scale 0) toward zero, null where the divisor is zero."""
    assert kind.scale == 0
    return _null_at_zero_divisor(_truncated_quotient, lambda a, b: a // b, arguments, kind)


def _truncated_quotient(dividend: NDArray[np.int64], divisor: NDArray[np.int64]) -> NDArray[np.int64]:
    quotient = np.abs(dividend) // np.abs(divisor)
    return np.where((dividend < 0) == (divisor < 0), quotient, -quotient)


def _null_at_zero_divisor(
    fast: Callable[..., NDArray[np.int64]],
    exact: Callable[[Decimal, Decimal], Decimal],
    arguments: Sequence[Datum],
    kind: Kind,
) -> Column:
    rows = _rows(arguments)
    dividend, divisor = (unscaled_values(as_column(argument, rows)) for argument in arguments)
    if dividend is None or divisor is None:
        return _per_row(lambda a, b: exact(a, b) if b else None, arguments, kind)
    known = boolean_column(divisor != 0)
    validity = valid_rows(*arguments)
    result = fast(dividend, np.where(divisor == 0, 1, divisor))
    return from_unscaled(result, kind, known if validity is None else compute("and", known, validity))


def decimal_words(column: Column) -> NDArray[np.int64]:
    """Low and high 64 bits of a decimal128 column's unscaled values; anything where it is null."""
    buffer = column.buffers()[1]
    if buffer is None:
        return np.zeros((len(column), 2), np.int64)
    start, length = 16 * column.offset, 2 * len(column)
    stored: NDArray[np.int64] = np.frombuffer(memoryview(buffer), np.int64, count=length, offset=start)
    return stored.reshape(-1, 2)  # little-endian: the low word first


def unscaled_values(column: Column) -> NDArray[np.int64] | None:
    """Unscaled values of a decimal128 column (anything where null), or None where 64 bits are too few."""
    stored = decimal_words(column)
    low, high = stored[:, 0], stored[:, 1]
    # The least 64-bit number has no absolute value, so it counts as too wide.
    fits = (high == low >> 63) & (low != np.iinfo(np.int64).min)
    return low if fits.all() else None


def from_unscaled(values: NDArray[np.int64], kind: pa.DataType, validity: Column | None = None) -> Column:
    """A decimal128 column of unscaled values, which must fit its precision."""
    return small_decimals.from_small(values, kind, validity)
