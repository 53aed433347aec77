"""What the catalogue says of a column's type in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import pyarrow as pa

from bamquery.data_types.type_groups import value_type


class Precision(NamedTuple):
    """Digits of a number: how many, to which base, and how many of them behind the point."""

    digits: int | None = None
    radix: int | None = None
    scale: int | None = None


_BITS: Final[Mapping[pa.DataType, int]] = MappingProxyType(
    {
        pa.int8(): 8,
        pa.int16(): 16,
        pa.int32(): 32,
        pa.int64(): 64,
        pa.float32(): 24,
        pa.float64(): 53,
    }
)
"""DuckDB says nothing of unsigned integers."""


def precision(kind: pa.DataType) -> Precision:
    """Of a type; nothing where it is no number."""
    kind = value_type(kind)
    if isinstance(kind, pa.Decimal128Type):
        return Precision(kind.precision, 10, kind.scale)
    bits = _BITS.get(kind)
    return Precision() if bits is None else Precision(bits, 2, 0)
