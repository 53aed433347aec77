"""Arrow types by DuckDB's names, and the groups that rules and binder tell apart."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

HUGEINT: Final = pa.decimal128(38, 0)
"""What stands for DuckDB's HUGEINT: Arrow has no 128-bit integer."""

_SIMPLE: Final[Mapping[pa.DataType, str]] = MappingProxyType(
    {
        pa.null(): '"NULL"',
        pa.bool_(): "BOOLEAN",
        pa.int8(): "TINYINT",
        pa.int16(): "SMALLINT",
        pa.int32(): "INTEGER",
        pa.int64(): "BIGINT",
        pa.uint8(): "UTINYINT",
        pa.uint16(): "USMALLINT",
        pa.uint32(): "UINTEGER",
        pa.uint64(): "UBIGINT",
        pa.float32(): "FLOAT",
        pa.float64(): "DOUBLE",
        pa.date32(): "DATE",
        pa.large_string(): "VARCHAR",
        pa.string(): "VARCHAR",
        pa.large_binary(): "BLOB",
        pa.binary(): "BLOB",
        pa.time64("us"): "TIME",
        pa.time64("ns"): "TIME_NS",
        pa.timestamp("s"): "TIMESTAMP_S",
        pa.timestamp("ms"): "TIMESTAMP_MS",
        pa.timestamp("us"): "TIMESTAMP",
        pa.timestamp("ns"): "TIMESTAMP_NS",
    }
)


def type_name(kind: pa.DataType) -> str:
    """DuckDB's spelling of a type: ``BIGINT``, ``DECIMAL(38,0)``, ``TIMESTAMP WITH TIME ZONE``.

    A dictionary is spelled as its values. A type that BamQuery has no column of keeps Arrow's spelling.
    """
    if pa.types.is_dictionary(kind):
        return type_name(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return "TIMESTAMP WITH TIME ZONE"
    return _SIMPLE.get(kind, str(kind))


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


def integer_range(kind: pa.DataType) -> tuple[int, int]:
    """Smallest and largest value of an integer type or `HUGEINT`."""
    if kind == HUGEINT:
        return -(10**38) + 1, 10**38 - 1
    if pa.types.is_signed_integer(kind):
        return -(1 << (kind.bit_width - 1)), (1 << (kind.bit_width - 1)) - 1
    return 0, (1 << kind.bit_width) - 1
