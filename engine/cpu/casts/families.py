"""Families of types, by which conversions are chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types.type_groups import is_interval

_FAMILIES: Final[Mapping[str, Callable[[pa.DataType], bool]]] = MappingProxyType(
    {
        "boolean": pa.types.is_boolean,
        "integer": pa.types.is_integer,
        "float": lambda kind: pa.types.is_float32(kind) or pa.types.is_float64(kind),
        "decimal": pa.types.is_decimal128,
        "text": pa.types.is_large_string,
        "blob": pa.types.is_large_binary,
        "date": pa.types.is_date32,
        "time": pa.types.is_time64,
        "timestamp": pa.types.is_timestamp,
        "interval": is_interval,
    }
)


def family(kind: pa.DataType) -> str | None:
    """The family of a type, or None for one that no column has."""
    for name, test in _FAMILIES.items():
        if test(kind):
            return name
    return None
