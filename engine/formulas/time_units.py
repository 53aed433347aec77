"""Units of dates and times, as every device counts them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

DAY_SECONDS: Final = 86_400
UNITS_PER_SECOND: Final[Mapping[str, int]] = MappingProxyType({"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9})

TIME_PARTS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {"hour": (3600, 24), "minute": (60, 60), "second": (1, 60)}
)
"""Seconds of the unit, and how many of it there are."""

FRACTIONS: Final[Mapping[str, int]] = MappingProxyType(
    {"millisecond": 10**3, "microsecond": 10**6, "nanosecond": 10**9}
)
"""How many of the unit a second has; they are counted from the minute."""

OF_MICROSECONDS: Final = frozenset({"microsecond", "millisecond"})
"""Units of dates that date_diff() counts by way of microseconds, of which a date may have too many."""

MOST_WHOLE_DAYS: Final = (2**63 - 1) // (DAY_SECONDS * 10**6)
"""Days from 1970 whose microseconds fit 64 bits."""


def units_per_day(kind: pa.DataType) -> int:
    """Stored units in a day: 1 for dates, 86,400 times the unit's for times and timestamps."""
    if isinstance(kind, (pa.TimestampType, pa.Time32Type, pa.Time64Type)):
        return DAY_SECONDS * UNITS_PER_SECOND[kind.unit]
    return 1
