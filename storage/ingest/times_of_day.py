"""Times of day that are none: Arrow holds any number of microseconds."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_A_SECOND: Final = MappingProxyType({"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9})
_DAY_SECONDS: Final = 24 * 60 * 60


def first_outside_day(array: Any) -> int | None:
    """Place of the first time before 00:00:00 or after 24:00:00, its end; None where there is none."""
    if not pa.types.is_time(array.type):
        return None
    end = _DAY_SECONDS * _A_SECOND[array.type.unit]
    kind = pa.int32() if array.type.bit_width == 32 else pa.int64()
    numbers = array.view(kind)
    ends = pc.min_max(numbers)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    if least is None or (least >= 0 and most <= end):
        return None
    outside = pc.or_(pc.less(numbers, pa.scalar(0, kind)), pc.greater(numbers, pa.scalar(end, kind)))
    place: int = pc.index(outside, True).as_py()
    return place
