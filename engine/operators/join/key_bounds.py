"""Bounds of keys that come in several frames, and their values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, Generic

import pyarrow as pa
import pyarrow.compute as pc

from bamquery.engine.device import Device, Frame
from bamquery.engine.operators.join.distinct_values import distinct_values
from bamquery.engine.operators.join.number_summary import summarize_numbers
from bamquery.plan.expressions import AggregateCall, ColumnRef
from bamquery.plan.nodes import Field
from bamquery.storage.format.storable_types import is_counted

_FEW_ROWS: Final = 1 << 17
"""Keys of a frame that are copied from a GPU."""


class KeyBounds(ABC, Generic[Frame]):
    """How many values columns have that are not null, and their bounds."""

    @abstractmethod
    def add(self, keys: Frame, *, distinct: bool) -> pa.Array[Any] | None:
        """Take a frame of one column; gives each of its values once, if wanted."""

    def add_all(self, frames: Sequence[Frame], *, distinct: bool) -> Sequence[pa.Array[Any]]:
        """Take several such frames; gives arrays that have each value, if wanted."""
        found = [self.add(keys, distinct=distinct) for keys in frames]
        return [values for values in found if values is not None]

    @abstractmethod
    def extremes(self) -> tuple[int, Any, Any]:
        """The values, the least and the greatest one, where there are any; of frames, one at least."""


class _NumberBounds(KeyBounds[Frame]):
    """Of numbers on the host: all that is asked of a column in one call."""

    def __init__(self, device: Device[Frame], kind: pa.DataType) -> None:
        self._device = device
        self._fields = [Field("key", kind)]
        self._count = 0
        self._bounds: list[pa.Array[Any]] = []

    def add(self, keys: Frame, *, distinct: bool) -> pa.Array[Any] | None:
        column = self._device.to_arrow(keys, self._fields).column(0)
        return self._summarize([column], distinct=distinct)

    def add_all(self, frames: Sequence[Frame], *, distinct: bool) -> Sequence[pa.Array[Any]]:
        columns = [self._device.to_arrow(keys, self._fields).column(0) for keys in frames]
        found = self._summarize(columns, distinct=distinct) if columns else None
        return [] if found is None else [found]

    def _summarize(self, columns: Sequence[pa.Array[Any]], *, distinct: bool) -> pa.Array[Any] | None:
        summary = summarize_numbers(columns, distinct=distinct)
        self._count += summary.count
        self._bounds.append(summary.bounds)
        return summary.distinct

    def extremes(self) -> tuple[int, Any, Any]:
        bounds = summarize_numbers(self._bounds, distinct=False).bounds
        return (self._count, *bounds) if self._count else (0, None, None)


class _AggregatedBounds(KeyBounds[Frame]):
    """Of anything, where it is."""

    def __init__(self, device: Device[Frame], kind: pa.DataType) -> None:
        self._device = device
        column = ColumnRef(0, "key", kind)
        self._aggregation = device.aggregation(
            (),
            [
                AggregateCall("count", (column,), pa.int64()),
                AggregateCall("min", (column,), kind),
                AggregateCall("max", (column,), kind),
            ],
        )
        self._groups = device.aggregation((column,), ())
        self._key = Field("key", kind)
        self._states: list[Any] = []

    def add(self, keys: Frame, *, distinct: bool) -> pa.Array[Any] | None:
        device = self._device
        self._states.append(self._aggregation.partial(keys))
        if not distinct:
            return None
        if device.capabilities.on_host:
            return distinct_values([device.to_arrow(keys, [self._key]).column(0)])
        groups = self._groups.final(self._groups.partial(keys))
        once: pa.Array[Any] = pc.drop_null(device.to_arrow(groups, [self._key]).column(0))
        return once

    def extremes(self) -> tuple[int, Any, Any]:
        merged = self._aggregation.final(self._aggregation.merge(self._states))
        fields = [Field("values", pa.int64()), self._key, self._key]
        values, least, greatest = (column[0] for column in self._device.to_arrow(merged, fields).columns)
        return values.as_py(), least, greatest


class _CopiedBounds(KeyBounds[Frame]):
    """Of numbers on a GPU: few are copied as they are, which costs less than asking what is to be known."""

    def __init__(self, device: Device[Frame], kind: pa.DataType) -> None:
        self._device = device
        self._kind = kind
        self._few = _NumberBounds(device, kind)
        self._many = _AggregatedBounds(device, kind)
        self._frames = {id(self._few): 0, id(self._many): 0}

    def add(self, keys: Frame, *, distinct: bool) -> pa.Array[Any] | None:
        own = self._few if distinct and self._device.row_count(keys) <= _FEW_ROWS else self._many
        self._frames[id(own)] += 1
        return own.add(keys, distinct=distinct)

    def extremes(self) -> tuple[int, Any, Any]:
        found = [own.extremes() for own in (self._few, self._many) if self._frames[id(own)]]
        some = [one for one in found if one[0]]
        if len(some) < 2:
            return some[0] if some else (0, None, None)
        ends: Any = pa.array([end.as_py() for _, *both in some for end in both], self._kind)
        together = pc.min_max(ends)
        return sum(count for count, *_ in some), together["min"], together["max"]


def key_bounds(device: Device[Frame], kind: pa.DataType) -> KeyBounds[Frame]:
    """For keys of a type."""
    if not is_counted(kind):
        return _AggregatedBounds(device, kind)
    return (_NumberBounds if device.capabilities.on_host else _CopiedBounds)(device, kind)
