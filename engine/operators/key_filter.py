"""What a join knows of the keys that it holds, for the scans that read its other side."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, Final, Generic

import pyarrow as pa
import pyarrow.compute as pc

from bamquery.engine.device import Device, Frame
from bamquery.engine.late_filter import LateCondition, LateFilter, is_ordered
from bamquery.engine.operators.join_pairs import JoinCondition
from bamquery.engine.operators.operator import Operator
from bamquery.plan.expressions import (
    AggregateCall,
    ColumnRef,
    Expression,
    Literal,
    Members,
    referenced_columns,
)
from bamquery.plan.format import format_expression
from bamquery.plan.nodes import Field, JoinKind
from bamquery.plan.rewriting import renumber

_KINDS: Final = frozenset({"inner", "semi", "right"})
"""Kinds that have no use for probed rows without a partner."""
_KEEPS_PROBED: Final = frozenset({"inner", "left", "semi", "anti", "single", "mark"})
"""Kinds that give nothing of a probed row that is left out, and lose nothing else by it."""
_MOST_VALUES: Final = 64
"""Different keys that are named one by one; more are a column."""
_MOST_ROWS: Final = 1 << 20
"""Held rows beyond which nobody collects their keys."""
_MOST_BYTES: Final = 1 << 24
"""Of collected keys."""
_COUNTS: Final = (Field("rows", pa.int64()), Field("values", pa.int64()))


def key_filters(probe: Operator[Any], kind: JoinKind, condition: JoinCondition) -> Mapping[int, LateFilter]:
    """A filter for each key, by its number, that some scan below the probed side has taken."""
    taken = {}
    if kind in _KINDS:
        for number, (key, held) in enumerate(zip(condition.probe_keys, condition.build_keys, strict=True)):
            late = LateFilter(f"keys of a join, {format_expression(held)}")
            if is_ordered(key.type) and probe.narrow(key, late):
                taken[number] = late
    return taken


def narrow_sides(
    sides: Sequence[Operator[Any]],
    kind: JoinKind,
    condition: JoinCondition,
    value: Expression,
    late: LateFilter,
) -> bool:
    """See `Operator.narrow`, for a join: a condition on a key is one on the key that it is equal to, too."""
    probe, build = sides
    width = len(probe.fields)
    read = referenced_columns(value)
    of_probe, of_build = all(index < width for index in read), all(index >= width for index in read)
    keys = list(zip(condition.probe_keys, condition.build_keys, condition.nulls_equal, strict=True))
    taken = False
    if of_probe and kind in _KEEPS_PROBED:
        taken = probe.narrow(value, late)
        if kind in ("inner", "semi"):
            for mine, other, nulls_equal in keys:
                taken |= mine == value and not nulls_equal and build.narrow(other, late)
    elif of_build and kind in ("inner", "right"):
        value = renumber(value, {index: index - width for index in read})
        taken = build.narrow(value, late)
        if kind == "inner":
            for other, mine, nulls_equal in keys:
                taken |= mine == value and not nulls_equal and probe.narrow(other, late)
    return taken


class KeySummary(Generic[Frame]):
    """The least and greatest key of held rows, and all of them while they are few."""

    def __init__(
        self, device: Device[Frame], condition: JoinCondition, filters: Mapping[int, LateFilter]
    ) -> None:
        self._device = device
        self._keys = {
            number: _KeySummary(device, condition.build_keys[number], late, condition.nulls_equal[number])
            for number, late in filters.items()
            if not _refused(device, condition.build_keys[number])
        }

    def add(self, frame: Frame) -> None:
        """Take held rows.

        Raises:
            ExecutionError: a key cannot be computed.
        """
        for key in self._keys.values():
            key.add(frame)

    def add_keys(self, keys: Frame) -> None:
        """Take held keys, each of them a column."""
        for number, key in self._keys.items():
            key.add_column(self._device.select(keys, [number]))

    def keys_noted(self, frames: Iterable[Frame]) -> Generator[Frame, None, None]:
        """The same frames of held keys, taken as they pass."""
        for frame in frames:
            self.add_keys(frame)
            yield frame

    def noted(self, frames: Iterable[Frame]) -> Generator[Frame, None, None]:
        """The same frames, taken as they pass."""
        for frame in frames:
            self.add(frame)
            yield frame

    def hand_down(self) -> None:
        """Tell the scans; the other side has not been read yet."""
        for key in self._keys.values():
            key.hand_down()


class _KeySummary(Generic[Frame]):
    def __init__(self, device: Device[Frame], key: Expression, late: LateFilter, nulls_equal: bool) -> None:
        self._device = device
        self._key = key
        self._late = late
        self._nulls_equal = nulls_equal
        column = ColumnRef(0, "key", key.type)
        self._column = column
        self._bounds = device.aggregation(
            (),
            [
                AggregateCall("count_star", (), pa.int64()),
                AggregateCall("count", (column,), pa.int64()),
                AggregateCall("min", (column,), key.type),
                AggregateCall("max", (column,), key.type),
            ],
        )
        self._fields = (*_COUNTS, Field("least", key.type), Field("greatest", key.type))
        self._states: list[Any] = []
        self._rows = 0
        # Floating-point numbers are told apart by more than they are compared by: their bounds are enough.
        self._names_values = not pa.types.is_floating(key.type)
        self._values: list[pa.Array[Any]] = []
        self._bytes = 0

    def add(self, frame: Frame) -> None:
        self.add_column(self._device.evaluate([self._key], frame))

    def add_column(self, keys: Frame) -> None:
        device = self._device
        self._states.append(self._bounds.partial(keys))
        self._rows += device.row_count(keys)
        if self._rows > _MOST_ROWS:
            self._names_values = False
        if not self._names_values:
            self._values.clear()
            return
        found = pc.unique(device.to_arrow(keys, [Field("key", self._key.type)]).column(0))
        self._bytes += found.nbytes
        if self._bytes <= _MOST_BYTES:
            self._values.append(found)
        else:
            self._names_values = False
            self._values.clear()

    def hand_down(self) -> None:
        if not self._states:
            return
        merged = self._bounds.final(self._bounds.merge(self._states))
        rows, values, least, greatest = (
            column[0] for column in self._device.to_arrow(merged, self._fields).columns
        )
        or_null = self._nulls_equal and values.as_py() < rows.as_py()
        if not values.as_py():
            if or_null:
                self._late.narrow_to([LateCondition(None)])
            return  # else no row has a partner, which the join sees by itself
        self._late.narrow_to(self._conditions(least, greatest, or_null=or_null))

    def _conditions(
        self, least: pa.Scalar[Any], greatest: pa.Scalar[Any], *, or_null: bool
    ) -> list[LateCondition]:
        low, high = Literal(least), Literal(greatest)
        if self._names_values and self._values:
            named = pc.drop_null(pc.unique(pa.chunked_array(self._values)))
            if len(named) == 1:
                return [LateCondition("equal", (low,), or_null)]
            if len(named) <= _MOST_VALUES:
                members = tuple(Literal(value) for value in named)
                return [LateCondition("in", members, or_null)]
            return [LateCondition("in", (low, high), or_null, Members(named))]
        return [
            LateCondition("greater_equal", (low,), or_null),
            LateCondition("less_equal", (high,), or_null),
        ]


def _refused(device: Device[Any], key: Expression) -> bool:
    return any(
        device.aggregate_refusals(AggregateCall(function, (key,), key.type)) for function in ("min", "max")
    )
