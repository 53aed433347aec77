"""Groups of Arrow types that rules and binder tell apart."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

HUGEINT: Final = pa.decimal128(38, 0)
"""What stands for DuckDB's HUGEINT: Arrow has no 128-bit integer."""

INTERVAL: Final = pa.month_day_nano_interval()
"""Months, days and a time, each by itself; whole microseconds, as in DuckDB."""


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type that values of `kind` have in expressions: a dictionary's are its values'."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_numeric(kind: pa.DataType) -> bool:
    """Integers, floats and decimals."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def is_integral(kind: pa.DataType) -> bool:
    """Integers, and `HUGEINT`."""
    return pa.types.is_integer(kind) or kind == HUGEINT


def is_string(kind: pa.DataType) -> bool:
    """Text of either offset width."""
    return pa.types.is_large_string(kind) or pa.types.is_string(kind)


def is_interval(kind: pa.DataType) -> bool:
    """INTERVAL."""
    return kind == INTERVAL


FURTHEST_PLACE: Final = 1 << 32
"""Places in a text, and lengths of its parts, are from its negative to below it; others are an error."""


def integer_range(kind: pa.DataType) -> tuple[int, int]:
    """Smallest and largest value of an integer type or `HUGEINT`."""
    if kind == HUGEINT:
        return -(10**38) + 1, 10**38 - 1
    if pa.types.is_signed_integer(kind):
        return -(1 << (kind.bit_width - 1)), (1 << (kind.bit_width - 1)) - 1
    return 0, (1 << kind.bit_width) - 1
