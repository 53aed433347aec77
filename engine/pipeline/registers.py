"""What registers hold, and what is known of it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

LARGEST: Final = 2**63 - 1


class Shape(enum.Enum):
    """What a register holds."""

    WORD = "word"
    DOUBLE = "double"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Value:
    """A register.

    Attributes:
        bound: no word is greater, nor less than minus that; 2**63 or more where nothing is known.
    """

    register: int
    shape: Shape
    bound: int = 2**63


class NotCoveredError(Exception):
    """There is no instruction for an expression; where it can be an input, it is one."""


def shape_of(kind: pa.DataType) -> Shape | None:
    """What registers hold values of a type as; None where they cannot."""
    types = pa.types
    if types.is_boolean(kind):
        return Shape.FLAG
    if types.is_float64(kind) or types.is_float32(kind):
        return Shape.DOUBLE
    if types.is_integer(kind) and kind != pa.uint64():
        return Shape.WORD
    temporal = types.is_date32(kind) or types.is_timestamp(kind) or types.is_time(kind)
    return Shape.WORD if temporal or types.is_decimal128(kind) else None


def bound_of(kind: pa.DataType) -> int:
    """The largest absolute value of a type whose values are words, as they are stored."""
    if isinstance(kind, pa.Decimal128Type):
        return int(10**kind.precision) - 1
    if pa.types.is_unsigned_integer(kind):
        return int(2**kind.bit_width) - 1
    return int(2 ** (kind.bit_width - 1))


def range_of(kind: pa.DataType) -> tuple[int, int]:
    """Least and greatest word of an integer or decimal type."""
    bound = bound_of(kind)
    if isinstance(kind, pa.Decimal128Type):
        return -bound, bound
    return (0, bound) if pa.types.is_unsigned_integer(kind) else (-bound, bound - 1)
