"""Values of answers as they are compared; needs no DuckDB."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa


def plain(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Values that compare across the two: stored integers for dates and times, decoded dictionaries."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_interval(column.type):
        return column.to_pylist()
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    return column.to_pylist()


def same(ours: Any, theirs: Any, tolerance: float = 0.0) -> bool:
    """Whether two values are equal, NaN to NaN; numbers within a relative tolerance."""
    if ours is None or theirs is None:
        return ours is theirs
    if isinstance(ours, float) or isinstance(theirs, float):
        a, b = float(ours), float(theirs)
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b or math.isclose(a, b, rel_tol=tolerance, abs_tol=0.0)
    if isinstance(ours, Decimal | int) and isinstance(theirs, Decimal | int):
        return Decimal(ours) == Decimal(theirs)
    return bool(ours == theirs)
