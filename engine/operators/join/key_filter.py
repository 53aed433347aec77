"""What a join knows of the keys that it holds, for the scans that read its other side."""

from __future__ import annotations

import functools
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, Final, Generic

import pyarrow as pa

from bamquery.closeable import Closeable
from bamquery.engine.capabilities import Capabilities
from bamquery.engine.device import Device, Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.key_keeping_device import keeps_keys
from bamquery.engine.operators.base.dynamic_filter import DynamicCondition, DynamicFilter, has_ordered_bounds
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.join.distinct_values import distinct_values
from bamquery.engine.operators.join.key_bounds import key_bounds
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.plan.expressions import (
    AggregateCall,
    ColumnRef,
    Expression,
    Literal,
    Members,
    referenced_columns,
)
from bamquery.plan.format import expression_text
from bamquery.plan.nodes import JoinKind
from bamquery.plan.rewriting import renumber
from bamquery.storage.format.storable_types import is_counted

_KINDS: Final = frozenset({"inner", "semi", "right"})
"""Kinds that have no use for probe rows without a partner."""
_KEEPS_PROBED: Final = frozenset({"inner", "left", "semi", "anti", "single", "mark"})
"""Kinds that give nothing of a probe row that is left out, and lose nothing else by it."""
_MOST_VALUES: Final = 64
"""Different keys that are named one by one; more are a column."""
_MOST_ROWS: Final = 1 << 20
"""Build rows beyond which nobody collects their keys."""
_KEPT_ROWS: Final = range((1 << 17) + 1, (1 << 23) + 1)
"""Build rows whose keys stay in a device's own memory, if it has one: fewer are copied in less time."""
_MOST_BYTES: Final = 1 << 24
"""Of collected keys."""
_COPIES: Final = 2
"""Times that they are in memory: as they came, and each once."""
_TABLE_BYTES: Final = 256
"""For each of them at most, of what scans find them by; see the devices' tables of members."""
_LARGEST_TABLE: Final = 1 << 24
_MOST_JOINS: Final = 32
"""Joins that a condition is taken down through."""


def key_filters(
    probe: Operator[Any], kind: JoinKind, condition: JoinCondition
) -> Mapping[int, DynamicFilter]:
    """A filter for each key, by its number, that some scan below the probe side has taken."""
    taken = {}
    if kind in _KINDS:
        for number, (key, build_key) in enumerate(
            zip(condition.probe_keys, condition.build_keys, strict=True)
        ):
            dynamic_filter = DynamicFilter(f"keys of a join, {expression_text(build_key)}")
            if has_ordered_bounds(key.type) and probe.push_dynamic_filter(key, dynamic_filter):
                taken[number] = dynamic_filter
    return taken


def filters_of_rows(
    probe: Operator[Any], kind: JoinKind, condition: JoinCondition, taken: Mapping[int, DynamicFilter]
) -> list[tuple[Expression, DynamicFilter]]:
    """See `Operator.join_filters`; `taken`: what a join has given scans, by the number of the key."""
    if kind != "inner":
        return []
    width = len(probe.fields)
    known = list(probe.join_filters())
    known += [(condition.probe_keys[number], own) for number, own in taken.items()]
    for key, other, nulls_equal in zip(
        condition.probe_keys, condition.build_keys, condition.nulls_equal, strict=True
    ):
        if not nulls_equal:
            places = {index: index + width for index in referenced_columns(other)}
            known += [(renumber(other, places), own) for value, own in known if value == key]
    return known


def push_filters_of_probe(probe: Operator[Any], build: Operator[Any], condition: JoinCondition) -> bool:
    """What joins below the probe side will know of keys, to scans of the build side; whether one takes it.

    For joins that have no use for build rows without a partner.
    """
    taken = False
    for value, known in probe.join_filters():
        for key, other, nulls_equal in zip(
            condition.probe_keys, condition.build_keys, condition.nulls_equal, strict=True
        ):
            if key == value and not nulls_equal and known.joins < _MOST_JOINS:
                known.joins += 1
                taken |= build.push_dynamic_filter(other, known)
    return taken


def push_filter_to_sides(
    sides: Sequence[Operator[Any]],
    kind: JoinKind,
    condition: JoinCondition,
    value: Expression,
    dynamic_filter: DynamicFilter,
) -> bool:
    """See `Operator.push_dynamic_filter`, for a join: what a key fulfils, the equal one does, too."""
    dynamic_filter.joins += 1
    if dynamic_filter.joins > _MOST_JOINS:
        return False
    probe, build = sides
    width = len(probe.fields)
    read = referenced_columns(value)
    of_probe, of_build = all(index < width for index in read), all(index >= width for index in read)
    keys = list(zip(condition.probe_keys, condition.build_keys, condition.nulls_equal, strict=True))
    taken = False
    if of_probe and kind in _KEEPS_PROBED:
        taken = probe.push_dynamic_filter(value, dynamic_filter)
        if kind in ("inner", "semi"):
            for mine, other, nulls_equal in keys:
                taken |= (
                    mine == value and not nulls_equal and build.push_dynamic_filter(other, dynamic_filter)
                )
    elif of_build and kind in ("inner", "right"):
        value = renumber(value, {index: index - width for index in read})
        taken = build.push_dynamic_filter(value, dynamic_filter)
        if kind == "inner":
            for other, mine, nulls_equal in keys:
                taken |= (
                    mine == value and not nulls_equal and probe.push_dynamic_filter(other, dynamic_filter)
                )
    return taken


class KeySummary(Closeable, Generic[Frame]):
    """The least and greatest key of build rows, and all of them while they are few; a context manager.

    Keys are named as long as memory has room for them, and held until the context is left.
    """

    def __init__(
        self,
        context: ExecutionContext[Frame],
        condition: JoinCondition,
        filters: Mapping[int, DynamicFilter],
    ) -> None:
        device = context.device
        self._device = device
        self._memory = context.memory.reservation("keys of a JOIN", spare=True)
        self._is_published = False
        self._keys = {
            number: _OneKeySummary(
                device,
                condition.build_keys[number],
                dynamic_filter,
                condition.nulls_equal[number],
                self._memory,
            )
            for number, dynamic_filter in filters.items()
            if not _is_refused(device, condition.build_keys[number])
        }

    def add(self, frame: Frame) -> None:
        """Take build rows.

        Raises:
            ExecutionError: a key cannot be computed.
        """
        for key in self._keys.values():
            key.add(frame)

    def add_all(self, frames: Sequence[Frame]) -> None:
        """Take all build rows that there are.

        Raises:
            ExecutionError: a key cannot be computed.
        """
        for key in self._keys.values():
            key.add_all(frames)

    def add_all_keys(self, frames: Sequence[Frame]) -> None:
        """Take all build keys that there are, each of them a column, in the same way."""
        for number, key in self._keys.items():
            key.add_all_columns([self._device.select(keys, [number]) for keys in frames])

    def add_keys(self, keys: Frame) -> None:
        """Take build keys, each of them a column."""
        for number, key in self._keys.items():
            key.add_column(self._device.select(keys, [number]))

    def observe_keys(self, frames: Iterable[Frame]) -> Generator[Frame, None, None]:
        """The same frames of build keys, taken as they pass."""
        for frame in frames:
            self.add_keys(frame)
            yield frame

    def observe_rows(self, frames: Iterable[Frame]) -> Generator[Frame, None, None]:
        """The same frames, taken as they pass."""
        for frame in frames:
            self.add(frame)
            yield frame

    def publish(self) -> None:
        """Tell the scans, once; the other side has not been read yet."""
        if not self._is_published:
            self._is_published = True
            for key in self._keys.values():
                key.publish()

    def close(self) -> None:
        """Give back the memory of the keys."""
        self._memory.close()


class _OneKeySummary(Generic[Frame]):
    def __init__(
        self,
        device: Device[Frame],
        key: Expression,
        dynamic_filter: DynamicFilter,
        nulls_equal: bool,
        memory: Reservation,
    ) -> None:
        self._device = device
        self._memory = memory
        self._key = key
        self._dynamic_filter = dynamic_filter
        self._nulls_equal = nulls_equal
        self._bounds = key_bounds(device, key.type)
        self._rows = 0
        # Floating-point numbers are told apart by more than they are compared by: their bounds are enough.
        self._names_values = not pa.types.is_floating(key.type)
        self._values: list[pa.Array[Any]] = []
        self._kept: Sequence[Frame] = ()
        self._bytes = self._held = 0

    def add(self, frame: Frame) -> None:
        self.add_column(self._device.evaluate([self._key], frame))

    def add_all(self, frames: Sequence[Frame]) -> None:
        self.add_all_columns([self._device.evaluate([self._key], frame) for frame in frames])

    def add_all_columns(self, keys: Sequence[Frame]) -> None:
        rows = sum(map(self._device.row_count, keys))
        if self._names_values and not self._rows and rows in _KEPT_ROWS and self._can_be_kept:
            self._kept, self._rows = keys, rows
            self._bounds.add_all(keys, distinct=False)
            return
        self._count(rows)
        for found in self._bounds.add_all(keys, distinct=self._names_values):
            self._keep(found)

    def add_column(self, keys: Frame) -> None:
        self._count(self._device.row_count(keys))
        found = self._bounds.add(keys, distinct=self._names_values)
        if found is not None:
            self._keep(found)

    @property
    def _can_be_kept(self) -> bool:
        return is_counted(self._key.type) and keeps_keys(self._device)

    def _count(self, rows: int) -> None:
        self._rows += rows
        if self._kept or self._rows > _MOST_ROWS:
            self._name_none()

    def _keep(self, found: pa.Array[Any]) -> None:
        """Have some values, as long as there is room for them."""
        if not self._names_values:
            return
        self._bytes += found.nbytes
        if self._bytes <= _MOST_BYTES and self._hold(_COPIES * self._bytes + self._table_bytes(len(found))):
            self._values.append(found)
        else:
            self._name_none()

    def _table_bytes(self, more: int) -> int:
        values = more + sum(map(len, self._values))
        return min(_TABLE_BYTES * values, _LARGEST_TABLE) if values > _MOST_VALUES else 0

    def _hold(self, size: int) -> bool:
        """Count bytes as held, those of other keys beside them; False where there is no room for them."""
        fits = self._memory.fits(self._memory.held - self._held + size)
        if fits:
            self._held = size
        return fits

    def _name_none(self) -> None:
        self._names_values = False
        self._kept = ()
        self._values.clear()
        self._hold(0)

    def publish(self) -> None:
        if not self._rows:
            return
        values, least, greatest = self._bounds.extremes()
        or_null = self._nulls_equal and values < self._rows
        if not values:
            if or_null:
                self._dynamic_filter.set_conditions([DynamicCondition(None)])
            return  # else no row has a partner, which the join sees by itself
        self._dynamic_filter.set_conditions(self._conditions(least, greatest, or_null=or_null))

    def _conditions(
        self, least: pa.Scalar[Any], greatest: pa.Scalar[Any], *, or_null: bool
    ) -> list[DynamicCondition]:
        low, high = Literal(least), Literal(greatest)
        if self._kept:
            assert keeps_keys(self._device)
            late = self._device.late_values(self._kept, least, greatest)
            if late is not None:
                return [DynamicCondition("in", (low, high), or_null, Members(late))]
        if self._names_values and self._values:
            named = self._values[0] if len(self._values) == 1 else distinct_values(self._values)
            if len(named) == 1:
                return [DynamicCondition("equal", (low,), or_null)]
            if len(named) <= _MOST_VALUES:
                members = tuple(Literal(value) for value in named)
                return [DynamicCondition("in", members, or_null)]
            return [DynamicCondition("in", (low, high), or_null, Members(named))]
        return [
            DynamicCondition("greater_equal", (low,), or_null),
            DynamicCondition("less_equal", (high,), or_null),
        ]


def _is_refused(device: Device[Any], key: Expression) -> bool:
    return not _has_extremes(device.capabilities, key.type)


@functools.lru_cache(maxsize=64)
def _has_extremes(able: Capabilities, kind: pa.DataType) -> bool:
    """Whether the device finds the least and the greatest value of a column of that type."""
    column = ColumnRef(0, "key", kind)
    extremes = (AggregateCall(function, (column,), kind) for function in ("min", "max"))
    return not any(map(able.aggregate_refusals, extremes))
