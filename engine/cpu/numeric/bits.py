"""Bits of integers, and digits to bases other than ten."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.data_types.names import type_name
from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Implementation,
    as_column,
    boolean_values,
    compute,
    from_values,
    stored_values,
    valid_rows,
)
from bamquery.engine.cpu.numeric.arithmetic import integer_range
from bamquery.engine.cpu.value_kernels import per_value, pieces, row_count, unknown_character
from bamquery.errors import ExecutionError

_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HEXADECIMAL: Final = frozenset("0123456789abcdefABCDEF")
_BINARY: Final = frozenset("01")
_EIGHT_BITS: Final = tuple(f"{byte:08b}" for byte in range(256))
_MOST_DIGITS: Final = 64
_HUGE: Final = 10**38
_HUGE_BITS: Final = 128


def _kernel(name: str, exact: Callable[..., int]) -> Implementation:
    """Arrow's kernel, or Python's integers for the 128 bits of a HUGEINT."""
    wide = per_value(lambda *values: _huge(exact(*map(int, values))))

    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        return wide(arguments, kind) if pa.types.is_decimal(kind) else compute(name, *arguments)

    return apply


def _huge(value: int) -> int:
    if abs(value) >= _HUGE:
        raise ValueError(f"DECIMAL(38,0) overflow: {value} has too many digits")
    return value


def _huge_shift_left(value: Decimal, shift: Decimal) -> int:
    number, places = int(value), int(shift)
    if number < 0:
        raise ValueError(f"a negative number, {number}, cannot be shifted to the left")
    if places < 0:
        raise ValueError(f"{number} << {places}: a shift to the left cannot be negative")
    if number == 0:
        return 0
    if places >= _HUGE_BITS:
        raise ValueError(f"DECIMAL(38,0) overflow: {number} << {places}")
    return _huge(number << places)


def _huge_shift_right(value: Decimal, shift: Decimal) -> int:
    return int(value) >> int(shift) if 0 <= shift < _HUGE_BITS else 0


def _stored_pair(arguments: Sequence[Datum]) -> tuple[Any, Any, Any]:
    """Stored values of both arguments, and where both are known."""
    rows = row_count(arguments)
    columns = [as_column(argument, rows) for argument in arguments]
    known = valid_rows(*columns)
    mask = np.ones(rows, np.bool_) if known is None else boolean_values(known)
    return stored_values(columns[0]), stored_values(columns[1]), mask


def _shift_left(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """What a shift would lose is an error."""
    if pa.types.is_decimal(kind):
        return per_value(_huge_shift_left)(arguments, kind)
    values, shifts, known = _stored_pair(arguments)
    low, high = integer_range(kind)
    bits = np.clip(shifts, 0, 63).astype(values.dtype)
    largest = np.right_shift(values.dtype.type(high), bits)
    failed = known & ((values < 0) | (shifts < 0) | ((values > largest) | (shifts > 63)) & (values != 0))
    if failed.any():
        row = int(np.argmax(failed))
        value, shift = int(values[row]), int(shifts[row])
        if value < 0:
            raise ExecutionError(f"a negative number, {value}, cannot be shifted to the left")
        if shift < 0:
            raise ExecutionError(f"{value} << {shift}: a shift to the left cannot be negative")
        raise ExecutionError(f"{type_name(kind)} overflow: {value} << {shift} does not fit {low} to {high}")
    with np.errstate(all="ignore"):
        shifted = np.where(values == 0, values, np.left_shift(values, bits))
    return from_values(shifted, kind, valid_rows(*arguments))


def _shift_right(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """0 where the shift is out of range."""
    if pa.types.is_decimal(kind):
        return per_value(_huge_shift_right)(arguments, kind)
    values, shifts, _ = _stored_pair(arguments)
    inside = (shifts >= 0) & (shifts < kind.bit_width)
    bits = np.where(inside, shifts, 0).astype(values.dtype)
    shifted = np.where(inside, np.right_shift(values, bits), 0).astype(values.dtype)
    return from_values(shifted, kind, valid_rows(*arguments))


def _bit_count(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """Of two's complement; the 128 bits of a HUGEINT of -1 wrap to -128, as in DuckDB."""
    (column,) = arguments
    assert isinstance(column, pa.Array)
    if pa.types.is_decimal(column.type):
        counts = np.bitwise_count(_halves(column)).sum(axis=1)
    else:
        values = stored_values(column)
        counts = np.bitwise_count(values.view(f"u{values.dtype.itemsize}"))
    return from_values(counts.astype(np.int8), kind, valid_rows(column))


def _halves(column: Column) -> NDArray[np.uint64]:
    """Each value of a 128-bit column as two words; anything where it is null."""
    buffer = column.buffers()[1]
    if buffer is None:
        return np.zeros((len(column), 2), np.uint64)
    words = np.frombuffer(memoryview(buffer), np.uint64, 2 * len(column), 16 * column.offset)
    return words.reshape(-1, 2)


def _hex(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    return _digits_in_base(
        arguments, kind, "X", lambda content: "".join(piece.hex().upper() for piece in pieces(content))
    )


def _bin(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    return _digits_in_base(arguments, kind, "b", _bits_of)


def _bits_of(content: bytes) -> str:
    return "".join(_EIGHT_BITS[byte] for piece in pieces(content) for byte in piece)


def _digits_in_base(arguments: Sequence[Datum], kind: pa.DataType, base: str, of_bytes: Any) -> Column:
    width = 128 if pa.types.is_decimal(arguments[0].type) else 64

    def write(value: int | Decimal | str | bytes) -> str:
        if isinstance(value, str):
            return str(of_bytes(value.encode()))
        if isinstance(value, bytes):
            return str(of_bytes(value))
        return format(int(value) & ((1 << width) - 1), base)

    return per_value(write)(arguments, kind)


def _unhex(text: str) -> bytes:
    bad = unknown_character(text, _HEXADECIMAL)
    if bad is not None:
        raise ValueError(f"'{bad}' is not a hexadecimal digit")
    return bytes.fromhex(text if len(text) % 2 == 0 else f"0{text}")


def _unbin(text: str) -> bytes:
    bad = unknown_character(text, _BINARY)
    if bad is not None:
        raise ValueError(f"'{bad}' is not a binary digit")
    padded = text.rjust(-(-len(text) // 8) * 8, "0")
    return b"".join(int(piece, 2).to_bytes(len(piece) // 8, "big") for piece in pieces(padded))


def _to_base(number: int, base: int, least: int) -> str:
    if number < 0:
        raise ValueError(f"to_base() needs a number of 0 or more, not {number}")
    if not 2 <= base <= len(_DIGITS):
        raise ValueError(f"to_base() needs a base from 2 to {len(_DIGITS)}, not {base}")
    if not 0 <= least <= _MOST_DIGITS:
        raise ValueError(f"to_base() needs a least length from 0 to {_MOST_DIGITS}, not {least}")
    digits = ""
    while number:
        number, digit = divmod(number, base)
        digits = _DIGITS[digit] + digits
    return (digits or "0").rjust(least, "0")


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "bit_and": _kernel("bit_wise_and", operator.and_),
        "bit_or": _kernel("bit_wise_or", operator.or_),
        "bit_xor": _kernel("bit_wise_xor", operator.xor),
        "bit_not": _kernel("bit_wise_not", operator.invert),
        "shift_left": _shift_left,
        "shift_right": _shift_right,
        "bit_count": _bit_count,
        "hex": _hex,
        "bin": _bin,
        "unhex": per_value(_unhex),
        "unbin": per_value(_unbin),
        "to_base": per_value(_to_base),
    }
)
