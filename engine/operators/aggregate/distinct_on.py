"""DISTINCT ON: of each chunk the rows that may be first in their groups, before all rows are sorted."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Final, Generic

import numpy as np
import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.ordered_map import ordered_map
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.base.frame_sizing import coalesce_frames
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.errors import MemoryLimitError
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Expression
from bamquery.plan.nodes import Field, SortKey

_POSITION: Final = Field("position", pa.int64())
_MANY: Final = 0.5
"""Part of a chunk's rows that are first ones from which on the search costs more than it spares."""


class DistinctOnPrefilter(Operator[Frame], Generic[Frame]):
    """The child's rows in their order, without most of those that come after another one of their group.

    Rows are of one group if their `keys` are equal. In the order of `order`, and in that of the child where
    that says nothing, the first row of each group is among those that are given.
    """

    runs_again = True

    def __init__(self, child: Operator[Frame], keys: Sequence[Expression], order: Sequence[SortKey]) -> None:
        super().__init__(child.fields, (child,), OperatorProfile("First rows", {"keys": len(keys)}))
        self._keys = tuple(keys)
        place = ColumnRef(len(child.fields), _POSITION.name, _POSITION.type)
        self._calls, self._answer = _first_row_calls(place, order, len(keys))

    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        """What groups do not want as a whole, nobody does: the grouping above passes on nothing else."""
        return self.children[0].push_dynamic_filter(value, dynamic_filter)

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """What is left of each chunk."""
        device = context.device
        grouping = device.aggregation(self._keys, self._calls)
        many = False

        def keep_candidates(frame: Frame) -> Frame:
            nonlocal many
            rows = device.row_count(frame)
            if many or rows < 2:
                return frame
            places = pa.record_batch([pa.array(np.arange(rows))], [_POSITION.name])
            numbered = device.join_columns([frame, device.from_arrow(places)])
            try:
                groups = device.evaluate([self._answer], grouping.final(grouping.partial(numbered)))
            except MemoryLimitError:  # of so many rows at once; the grouping above takes fewer
                return frame
            if device.row_count(groups) > _MANY * rows:
                many = True  # other threads may look at some more chunks
                return frame
            return device.take(frame, device.as_positions(groups))

        with (
            closing(self.children[0].frames(context)) as frames,
            closing(coalesce_frames(context, frames)) as chunks,
            closing(ordered_map(context, keep_candidates, chunks)) as answers,
        ):
            yield from answers


def _first_row_calls(
    place: ColumnRef, order: Sequence[SortKey], keys: int
) -> tuple[tuple[AggregateCall, ...], Expression]:
    """Calls that find the position of each group's first row, and the expression over groups that it is."""
    columns = [ColumnRef(keys + i, _POSITION.name, _POSITION.type) for i in range(2)]
    if len(order) != 1 or not _has_extremes(order[0].expression.type):
        call = AggregateCall("first", (place,), _POSITION.type, order=tuple(order))
        return (call,), columns[0]
    # Without sorting: that of the extreme, and that of the first null.
    (key,) = order
    name = "arg_max" if key.descending else "arg_min"
    extreme = AggregateCall(name, (place, key.expression), _POSITION.type)
    is_null = Call("is_null", (key.expression,), pa.bool_())
    null = AggregateCall("first", (place,), _POSITION.type, filter=is_null)
    chosen = reversed(columns) if key.nulls_first else columns
    return (extreme, null), Call("coalesce", tuple(chosen), _POSITION.type)


def _has_extremes(kind: pa.DataType) -> bool:
    return types.is_numeric(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)
