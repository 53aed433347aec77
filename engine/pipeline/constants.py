"""Constants as registers hold them."""

from __future__ import annotations

import struct
from decimal import Context
from typing import Any, Final

import pyarrow as pa

_EXACT: Final = Context(prec=100)


def bits_of_double(value: float) -> int:
    """The bits of a double as a whole number with a sign."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits)


def word_of(value: pa.Scalar[Any]) -> int:
    """A constant of an integer, decimal, date, time or timestamp type, not null, as it is stored."""
    if isinstance(value, pa.Decimal128Scalar):
        return int(value.as_py().scaleb(value.type.scale, _EXACT))
    if pa.types.is_integer(value.type):
        return int(value.as_py())
    units: int = value.value  # type: ignore[attr-defined]
    return units
