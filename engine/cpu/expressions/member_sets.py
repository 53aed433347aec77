"""Whether values are among many: by a table of flags where these are close numbers, else by hashes."""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bamquery.engine.cpu.comparisons import is_in_set
from bamquery.engine.cpu.kernels import Column, booleans, valid_rows
from bamquery.plan.expressions import Members

_MOST_FLAGS: Final = 1 << 24
"""Bytes of a table, which should stay in a cache that cores share."""
_SPARSE: Final = 256
"""Flags for each member up to which a large table is made: of fewer members, hashes take no more time."""
_SMALL: Final = 1 << 21
"""Bytes of a table that is made however few the members are: less than a chunk of values."""


class _Flags:
    """One flag for each number from the least to the greatest member, and one on each side for all others."""

    def __init__(self, low: int, span: int, members: NDArray[np.int64]) -> None:
        self._below = np.array(low).astype(np.int64) - 1  # of the lowest number it wraps around, as places do
        self._table = np.zeros(span + 2, np.bool_)
        self._table[members - self._below] = True

    def contains(self, column: Column) -> Column:
        """Whether each value is a member; null where it is null."""
        # Places that are clipped, those of differences that wrap around too, end up beside the members'.
        places = _numbers(column) - self._below
        return booleans(self._table.take(places, mode="clip"), valid_rows(column))


_flags: WeakKeyDictionary[Members, _Flags | None] = WeakKeyDictionary()


def is_member(column: Column, members: Members) -> Column:
    """Whether each value of a column of the members' type is one of them; null where it is null."""
    if members not in _flags:
        _flags[members] = _make_set(members)
    flags = _flags[members]
    return is_in_set(column, members.values) if flags is None else flags.contains(column)


def _make_set(members: Members) -> _Flags | None:
    if not _is_counted(members.type) or not len(members.values):
        return None
    numbers = _numbers(members.values)
    low, high = int(numbers.min()), int(numbers.max())
    span = high - low + 1
    if span > min(_MOST_FLAGS, max(_SPARSE * len(numbers), _SMALL)):
        return None
    return _Flags(low, span, numbers)


def _is_counted(kind: pa.DataType) -> bool:
    """Whether values are integers that an int64 holds, or numbers of days, seconds and the like."""
    return bool(
        (pa.types.is_integer(kind) and not pa.types.is_uint64(kind))
        or pa.types.is_date(kind)
        or pa.types.is_time(kind)
        or pa.types.is_timestamp(kind)
    )


def _numbers(column: Any) -> NDArray[np.int64]:
    """The values as integers; nulls as anything."""
    if not pa.types.is_integer(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    if column.null_count:
        column = pc.fill_null(column, 0)
    found: NDArray[np.int64] = column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return found
