"""What Arrow types are called in SQL, in DuckDB's spelling: for messages, DESCRIBE and the shell."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

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
        pa.month_day_nano_interval(): "INTERVAL",
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
