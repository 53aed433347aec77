"""Order keys: unsigned numbers that order as the values of a type do; storage/core/order_key.hpp for Python.

A key has 32 bits for values of up to 32 bits, 128 for decimals and 64 for others; -0 is 0, and NaN is the
greatest and equals itself, as everywhere in BamQuery.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

Interval: TypeAlias = tuple[int, int]
"""Keys from the first to the second, both included."""


@dataclass(frozen=True)
class KeyCondition:
    """Which rows of a column pass, by their keys.

    Attributes:
        intervals: of keys that pass, ascending and apart.
        nulls: whether rows pass that are null.
    """

    intervals: tuple[Interval, ...]
    nulls: bool


def key_bits(kind: pa.DataType) -> int:
    """Of the keys of values of that type."""
    return max(kind.bit_width, 32)


def order_key(value: pa.Scalar[Any]) -> int:
    """The key of a value that is not null."""
    bits = key_bits(value.type)
    sign = 1 << (bits - 1)
    if pa.types.is_boolean(value.type):
        return int(value.as_py())
    if pa.types.is_decimal(value.type):
        return (unscaled_value(value.as_py()) & ((1 << bits) - 1)) ^ sign
    if pa.types.is_floating(value.type):
        number = value.as_py()
        if math.isnan(number):
            return (1 << bits) - 1
        found = int.from_bytes(struct.pack("<d" if bits == 64 else "<f", number + 0.0), "little")
        return (found ^ ((1 << bits) - 1)) if found & sign else found | sign
    number = (
        value.as_py() if pa.types.is_integer(value.type) else value.cast(_storage_type(value.type)).as_py()
    )
    if pa.types.is_unsigned_integer(value.type):
        return int(number)
    return (int(number) & ((1 << bits) - 1)) ^ sign


def unscaled_value(value: Decimal) -> int:
    """The digits as one number: Arrow gives as many behind the point as the type has."""
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits)))
    return -number if sign else number


def _storage_type(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if kind.bit_width == 64 else pa.int32()
