"""Where dates, times and timestamps end, in the units that they are stored in."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

LARGEST_DAY: Final = 2**31 - 2
"""Of a date, before and after 1970: the number beyond it is DuckDB's infinity, and no date."""
LARGEST_UNIT: Final = 2**63 - 2
"""Of a timestamp, in microseconds or nanoseconds, for the same reason."""
LAST_MOMENT_DAY: Final = 106_751_991
"""Of a timestamp, in days from 1970, before and after it."""
LAST_MOMENT_REST: Final = LARGEST_UNIT - LAST_MOMENT_DAY * 86_400 * 10**6
"""Microseconds that a timestamp reaches into its last day; the first day is there as a whole."""
FIRST_SECOND: Final = -9_223_372_022_400
"""The first second of a timestamp that a text can say, 290309-12-22 (BC) 00:00:00."""

_DAY_SECONDS: Final = 86_400
_PER_SECOND: Final[Mapping[str, int]] = MappingProxyType({"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9})


def stored_limits(kind: Any) -> tuple[int, int] | None:
    """Smallest and largest number that a date, time or timestamp is stored as, None for other types.

    Seconds and milliseconds reach as far as microseconds do, to which many casts lead.
    """
    if pa.types.is_date32(kind):
        return -LARGEST_DAY, LARGEST_DAY
    if pa.types.is_time64(kind):
        return 0, _DAY_SECONDS * _PER_SECOND[kind.unit]
    if pa.types.is_timestamp(kind):
        most = LARGEST_UNIT * min(_PER_SECOND[kind.unit], 10**6) // 10**6
        return -most, most
    return None
