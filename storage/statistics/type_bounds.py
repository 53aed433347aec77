"""Values that fit a type's bits, but not the type: what no query could read again.

A date or timestamp may be DuckDB's infinity (the type's largest number, and that below zero) or lie beyond
what TIMESTAMP reaches, a time outside of the day, a decimal may have more digits than its type.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bamquery.data_types.limits import stored_limits

_LARGEST: Final = {32: 2**31 - 1, 64: 2**63 - 1}


def first_outside(array: Any) -> tuple[int, str] | None:
    """Place of the first value that its type does not hold and what is wrong with it, or None."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return None if first_outside(array.dictionary) is None else first_outside(array.dictionary_decode())
    if pa.types.is_decimal128(kind):
        return _first_long(array)
    limits = stored_limits(kind)
    if limits is None:
        return None
    low, high = limits
    numbers = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    ends = pc.min_max(numbers)
    if ends["min"].as_py() is None or (ends["min"].as_py() >= low and ends["max"].as_py() <= high):
        return None
    values = numbers.fill_null(low).to_numpy(zero_copy_only=False)
    row = int(np.argmax((values < low) | (values > high)))
    return row, _fault(int(values[row]), kind)


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
