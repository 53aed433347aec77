"""Families of types, and which of them a plan may cast to which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types.type_groups import is_interval, value_type

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


CASTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "boolean": ("integer", "float", "decimal", "text"),
        "integer": ("boolean", "integer", "float", "decimal", "text"),
        "float": ("boolean", "integer", "float", "decimal", "text"),
        "decimal": ("boolean", "integer", "float", "decimal", "text"),
        "text": (
            *("boolean", "integer", "float", "decimal", "blob"),
            *("date", "time", "timestamp", "interval"),
        ),
        "blob": ("text",),
        "date": ("text", "timestamp"),
        "time": ("text", "time"),
        "timestamp": ("text", "date", "time", "timestamp"),
        "interval": ("text",),
    }
)
"""Where values of a family can be cast to."""


def is_castable(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether there is a cast between two types."""
    source, target = value_type(source), value_type(target)
    if source == target or pa.types.is_null(source):
        return True
    return family(target) in CASTS.get(family(source) or "", ())
