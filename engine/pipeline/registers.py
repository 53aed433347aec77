"""What registers hold, and what is known of it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
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


def _ids(*kinds: pa.DataType) -> set[int]:
    return {kind.id for kind in kinds}


_SHAPES: Final[Mapping[int, Shape]] = MappingProxyType(
    {
        **dict.fromkeys(_ids(pa.bool_()), Shape.FLAG),
        **dict.fromkeys(_ids(pa.float32(), pa.float64()), Shape.DOUBLE),
        **dict.fromkeys(_ids(pa.int8(), pa.int16(), pa.int32(), pa.int64()), Shape.WORD),
        **dict.fromkeys(_ids(pa.uint8(), pa.uint16(), pa.uint32()), Shape.WORD),
        **dict.fromkeys(_ids(pa.date32(), pa.timestamp("us"), pa.time32("s"), pa.time64("us")), Shape.WORD),
        **dict.fromkeys(_ids(pa.decimal128(1)), Shape.WORD),
    }
)
"""By the number that Arrow knows a type's kind by: each node of each statement is asked."""


class NotCoveredError(Exception):
    """There is no instruction for an expression; where it can be an input, it is one."""


def shape_of(kind: pa.DataType) -> Shape | None:
    """What registers hold values of a type as; None where they cannot."""
    return _SHAPES.get(kind.id)


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
