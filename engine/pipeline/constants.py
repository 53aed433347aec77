"""Constants as registers hold them."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa


def bits_of_double(value: float) -> int:
    """The bits of a double as a whole number with a sign."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits)


def word_of(value: pa.Scalar[Any]) -> int:
    """A constant of an integer, decimal, date, time or timestamp type, not null, as it is stored."""
    if isinstance(value, pa.Decimal128Scalar):
        sign, digits, exponent = value.as_py().as_tuple()
        number = int("".join(map(str, digits)))
        assert isinstance(exponent, int)
        number = number * 10 ** (exponent + value.type.scale)
        return int(-number if sign else number)
    if pa.types.is_integer(value.type):
        return int(value.as_py())
    stored = pa.int32() if value.type.bit_width == 32 else pa.int64()
    return int(value.cast(stored).as_py())
