"""Infinite dates and timestamps, as DuckDB writes them: the type's largest number, and that below zero."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_LARGEST: Final = {32: 2**31 - 1, 64: 2**63 - 1}


def first_infinite(array: Any) -> tuple[int, str] | None:
    """Place and name of the first infinite date or timestamp, None where there is none."""
    if not (pa.types.is_date32(array.type) or pa.types.is_timestamp(array.type)):
        return None
    bits = array.type.bit_width
    numbers = array.view(pa.int32() if bits == 32 else pa.int64())
    ends = pc.min_max(numbers)
    found = [
        (pc.index(numbers, infinite).as_py(), name)
        for end, infinite, name in (
            ("max", _LARGEST[bits], "infinity"),
            ("min", -_LARGEST[bits], "-infinity"),
        )
        if ends[end].as_py() in (infinite, -_LARGEST[bits] - 1)
    ]
    return min(((row, name) for row, name in found if row >= 0), default=None)
