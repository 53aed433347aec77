"""Values that fit a type's bits, but not the type: what no query could read again.

A date or timestamp may be DuckDB's infinity (the type's largest number, and that below zero) or lie beyond
what TIMESTAMP reaches, a time outside of the day, a decimal may have more digits than its type.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY_SECONDS: Final = 86_400
_LARGEST: Final = {32: 2**31 - 1, 64: 2**63 - 1}


def first_outside(array: Any) -> tuple[int, str] | None:
    """Place of the first value that its type does not hold and what is wrong with it, or None."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return None if first_outside(array.dictionary) is None else first_outside(array.dictionary_decode())
    if pa.types.is_decimal128(kind):
        return _first_long(array)
    limits = _limits(kind)
    if limits is None:
        return None
    low, high = limits
    numbers = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    ends = pc.min_max(numbers)
    if ends["min"].as_py() is None or (ends["min"].as_py() >= low and ends["max"].as_py() <= high):
        return None
    outside: Any = pc.or_(pc.less(numbers, low), pc.greater(numbers, high))
    row = pc.index(outside, True).as_py()
    return row, _fault(numbers[row].as_py(), kind)


def _limits(kind: Any) -> tuple[int, int] | None:
    """Smallest and largest number that a value of the type is stored as."""
    if pa.types.is_date32(kind):
        return -_LARGEST[32] + 1, _LARGEST[32] - 1
    if pa.types.is_time64(kind):
        return 0, _DAY_SECONDS * _PER_SECOND[kind.unit]
    if pa.types.is_timestamp(kind):
        # Seconds and milliseconds reach as far as microseconds do, to which many casts lead.
        most = (_LARGEST[64] - 1) * min(_PER_SECOND[kind.unit], 10**6) // 10**6
        return -most, most
    return None


def _fault(number: int, kind: Any) -> str:
    if pa.types.is_time(kind):
        return (
            "reaches from 00:00:00 to 24:00:00: leave the column out, or write it with a time or NULL instead"
        )
    if abs(number) >= _LARGEST[kind.bit_width]:
        infinity = "infinity" if number > 0 else "-infinity"
        return (
            f"has no {infinity} here, as DuckDB has: leave the column out, or write it with a far day or "
            "NULL instead"
        )
    return "reaches from 290309 BC to 294247: leave the column out, or write it with a nearer day or NULL"


def _first_long(array: Any) -> tuple[int, str] | None:
    """Of decimals, the first with too many digits."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        start, stop = 0, len(array)
        while stop - start > 1:
            middle = (start + stop) // 2
            try:
                array.slice(start, middle - start).validate(full=True)
                start = middle
            except pa.ArrowInvalid:
                stop = middle
        return (
            start,
            "does not have so many digits: leave the column out, or write it as a wider DECIMAL or DOUBLE",
        )
    return None
