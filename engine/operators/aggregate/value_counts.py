"""How often each value comes in each group, and the aggregates that follow from that."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any, Final, Generic

import numpy as np
import pyarrow as pa

from bamquery.data_types.type_groups import value_type
from bamquery.engine.device import Aggregation, Frame, GroupState
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.execution.spill_files import SpillFile
from bamquery.engine.operators.aggregate.answers_from_counts import answers_from_counts
from bamquery.engine.operators.aggregate.group_states import GroupStates
from bamquery.engine.operators.aggregate.sorted_counts import COUNT, GROUP_BYTES, SortedCounts
from bamquery.engine.operators.base.frame_sizing import coalesce_frames
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, SortKey
from bamquery.plan.nodes import Field

COUNTED: Final = frozenset({"mode", "entropy", "quantile_cont", "quantile_disc", "mad"})
"""Aggregates of one argument for which it is enough to know how often each value comes, and where first."""

_PLACE: Final = Field("place", pa.int64())
_STATE_ROWS: Final = 1 << 32
"""More than the values of a state: places of the next one's are behind them."""
_MOST_PORTIONS: Final = 256


class ValueCounts(Generic[Frame]):
    """Rows of one argument of one or more calls, grouped by keys and value.

    Where a call is a `mode`, it is also known which of the rows of a value comes first, in the calls' order.
    """

    def __init__(
        self,
        context: ExecutionContext[Frame],
        keys: Sequence[Field],
        calls: Sequence[AggregateCall],
        memory: Reservation,
        profile: OperatorProfile,
    ) -> None:
        """`calls`: of the same argument, filter and order; columns have no dictionaries."""
        assert context.spill_folder is not None
        self._context = context
        self._folder = context.spill_folder
        self._calls = tuple(calls)
        self._profile = profile
        self._value = Field("value", value_type(calls[0].arguments[0].type))
        self._order = [
            SortKey(ColumnRef(len(keys) + 1 + i, "order", value_type(key.expression.type)), *_ways(key))
            for i, key in enumerate(calls[0].order)
        ]
        self._fields = [*keys, self._value]
        self._columns = [ColumnRef(i, field.name, field.type) for i, field in enumerate(self._fields)]
        self._has_mode = any(call.function == "mode" for call in calls)
        counted = [AggregateCall("count_star", (), COUNT.type)]
        if self._has_mode:
            place = ColumnRef(len(self._fields) + len(self._order), _PLACE.name, _PLACE.type)
            if self._order:
                first = (*self._order, SortKey(place))
                counted += [
                    AggregateCall("first", (key.expression,), key.expression.type, order=first)
                    for key in first
                ]
            else:
                counted.append(AggregateCall("min", (place,), _PLACE.type))
        self._aggregation = context.device.aggregation(self._columns, counted)
        self._states = GroupStates(context, self._aggregation, memory, profile)

    def partial(self, values: Frame, number: int, start: int) -> GroupState:
        """The counts of rows of keys, value and sort keys: of state `number` from row `start` on."""
        device = self._context.device
        if self._has_mode:
            rows = device.row_count(values)
            first = number * _STATE_ROWS + start
            places = pa.array(np.arange(first, first + rows))
            column = device.from_arrow(pa.RecordBatch.from_arrays([places], [_PLACE.name]))
            values = device.join_columns([values, column])
        if self._order:  # with which rows are kept whose value is null
            values = device.filter(values, Call("is_not_null", (self._columns[-1],), pa.bool_()))
        state: GroupState = self._aggregation.partial(values)
        return state

    def add(self, state: GroupState) -> None:
        """Take the counts of more rows; see `GroupStates.add`."""
        self._states.add(state)

    def answers(
        self, groups: int, sorting: Reservation, known: Reservation, modes: Reservation
    ) -> Generator[tuple[int, Frame], None, None]:
        """For each of the calls frames of the keys and its value, a row for each group that has a value.

        Raises:
            MemoryLimitError: there are far too many groups.
            StorageError: files cannot be written or read back.
        """
        with ExitStack() as stack:
            device = self._context.device
            groupings = stack.enter_context(closing(self._states.frames()))
            frames: Iterator[Frame] = stack.enter_context(closing(coalesce_frames(self._context, groupings)))
            found = None
            if self._has_mode:
                found = GroupStates(self._context, self._most_frequent(), modes, self._profile)
                frames = self._add_most_frequent(frames, stack.enter_context(closing(found)))
            sorted_calls = [(i, call) for i, call in enumerate(self._calls) if call.function != "mode"]
            if sorted_calls:
                width = range(len(self._fields) + 1)
                rows = (device.select(frame, width) for frame in frames)
                for portion in stack.enter_context(closing(self._portions(rows, groups, known.certain))):
                    counts = SortedCounts(self._context, self._fields, known, self._profile)
                    with closing(counts):
                        counts.fill(portion, sorting)
                        for i, call in sorted_calls:
                            with closing(answers_from_counts(counts, call, sorting)) as found_frames:
                                for frame in found_frames:
                                    yield i, frame
            for _ in frames:
                self._context.check_cancelled()
            if found is not None:
                modes_of_calls = [i for i, call in enumerate(self._calls) if call.function == "mode"]
                for frame in stack.enter_context(closing(found.frames())):
                    for i in modes_of_calls:
                        yield i, frame

    def _portions(
        self, rows: Iterable[Frame], groups: int, most: int
    ) -> Generator[Iterable[Frame], None, None]:
        """The rows; where what is known of each group takes more than `most` bytes, some groups at a time."""
        context, device = self._context, self._context.device
        count = 1
        while count < _MOST_PORTIONS and groups * GROUP_BYTES > count * most:
            count *= 2
        if count == 1:
            yield rows
            return
        fields = [*self._fields, COUNT]
        with ExitStack() as stack:
            files = [
                stack.enter_context(SpillFile(device, self._folder, fields, self._profile))
                for _ in range(count)
            ]
            for frame in rows:
                context.check_cancelled()
                keys = device.select(frame, range(len(self._fields) - 1))
                for file, partition in zip(files, device.partition(frame, keys, count, 0), strict=True):
                    file.write(partition)
            for file in files:
                with file, closing(file.frames()) as frames:
                    yield frames

    def release_memory(self) -> None:
        """See `GroupStates.release_memory`."""
        self._states.release_memory()

    def close(self) -> None:
        """Let go of files."""
        self._states.close()

    def _most_frequent(self) -> Aggregation[Frame, Any]:
        """Over the groups by keys and value: keys, and the value that comes most often, the first of such."""
        keys = self._columns[:-1]
        last = len(self._fields)
        order = [SortKey(ColumnRef(last, COUNT.name, COUNT.type), descending=True)]
        for i, key in enumerate([*self._order, SortKey(ColumnRef(0, _PLACE.name, _PLACE.type))]):
            column = ColumnRef(last + 1 + i, "first", key.expression.type)
            order.append(SortKey(column, *_ways(key)))
        value = self._columns[-1]
        mode = AggregateCall("first", (value,), value.type, order=tuple(order))
        return self._context.device.aggregation(keys, [mode])

    def _add_most_frequent(
        self, frames: Iterable[Frame], found: GroupStates[Frame]
    ) -> Generator[Frame, None, None]:
        """The frames, of which the most frequent values are found on the way."""
        most_frequent = self._most_frequent()
        for frame in frames:
            found.add(most_frequent.partial(frame))
            yield frame


def _ways(key: SortKey) -> tuple[bool, bool]:
    return key.descending, key.nulls_first
