"""GROUP BY on this device: partial states of chunks, merged, then made into rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native as native
from bamquery.engine.cpu.aggregates.accumulator import (
    Accumulator,
    Codes,
    StateColumn,
    StateColumns,
    concatenate_state_columns,
)
from bamquery.engine.cpu.aggregates.registry import accumulator_of
from bamquery.engine.cpu.aggregates.splicing import Spread, one_by_one, shared_groups
from bamquery.engine.cpu.aggregates.value_lists import flatten_lists, make_lists, owning_lists, pack_struct
from bamquery.engine.cpu.expressions.dictionary_encoded import evaluate_encoded
from bamquery.engine.cpu.expressions.evaluation import evaluate_columns
from bamquery.engine.cpu.frame_memo import memo_scope
from bamquery.engine.cpu.frames import as_type, concatenate_columns, decode_dictionary, make_batch, take_batch
from bamquery.engine.cpu.kernels import Column, as_column, boolean_values, constant, nulls, take
from bamquery.engine.cpu.keys.grouping import Grouping, group_rows
from bamquery.engine.cpu.keys.hashing import partition_rows
from bamquery.engine.cpu.pipeline.compiled_aggregates import CompiledAggregates
from bamquery.engine.cpu.stored_frame import StoredFrame, needed_batch
from bamquery.plan.expressions import AggregateCall, Expression, referenced_columns

_SMALL_PIECE: Final = 16_384
"""Groups of a piece below which it shares its memory with its neighbours: to copy each alone takes longer."""
_TOGETHER: Final = 16
"""Pieces that do so."""


@dataclass(slots=True, eq=False)
class CpuGroups:
    """States of some groups.

    Attributes:
        keys: the groups' keys, decoded and distinct.
        groups: how many.
        aggregates: their states; calls over the same state share it.
    """

    keys: tuple[Column, ...]
    groups: int
    aggregates: tuple[StateColumns, ...]

    @property
    def nbytes(self) -> int:
        """Memory held."""
        size = 0
        for own in (self.keys, *self.aggregates):
            for column in own:
                size += column.nbytes
        return size


class CpuAggregation:
    """Keys and aggregate calls; see `bamquery.engine.device.Aggregation`.

    States keep their groups in order of first appearance.
    """

    def __init__(
        self, keys: Sequence[Expression], calls: Sequence[AggregateCall], *, programs: bool = True
    ) -> None:
        """`programs`: computed by one, as far as that goes."""
        self._keys = tuple(keys)
        self._calls = tuple(calls)
        assert not any(call.distinct for call in self._calls), "operators make arguments distinct"
        self._answering = tuple(accumulator_of(call) for call in self._calls)
        stated, self._places = _states(self._calls, self._answering)
        self._stated = [self._calls[i] for i in stated]
        self._accumulators = tuple(self._answering[i] for i in stated)
        self._averages = _averages(self._stated)
        self._order = sorted(range(len(stated)), key=lambda i: i in self._averages)
        self._compiled = (
            CompiledAggregates(self._stated, self._accumulators, self._keys) if programs else None
        )

    @property
    def keys(self) -> tuple[Expression, ...]:
        """What rows are grouped by."""
        return self._keys

    @property
    def calls(self) -> tuple[AggregateCall, ...]:
        """The aggregate calls."""
        return self._calls

    @property
    def program(self) -> str | None:
        """How many aggregates a program computes."""
        return None if self._compiled is None else self._compiled.describe(len(self._stated))

    def partial(self, frame: pa.RecordBatch | StoredFrame) -> CpuGroups:
        """The state of one frame's rows."""
        with memo_scope():  # several aggregates of one column, and all of one grouping
            return self._partial(frame)

    def _partial(self, frame: pa.RecordBatch | StoredFrame) -> CpuGroups:
        grouped = None if self._compiled is None else self._compiled.group(frame)
        if grouped is None:
            keys = evaluate_encoded(self._keys, needed_batch(frame, referenced_columns(*self._keys)))
            grouping = group_rows(keys, frame.num_rows)
            own = {} if self._compiled is None else self._compiled.run(frame, grouping)
        else:
            grouping, own = grouped
        if len(own) == len(self._stated):
            return CpuGroups(grouping.keys, grouping.groups, tuple(own[i] for i in range(len(own))))
        inputs = [one for i, call in enumerate(self._stated) if i not in own for one in call.inputs]
        batch = needed_batch(frame, referenced_columns(*inputs))
        for i in self._order:
            if i in own:
                continue
            call, accumulator = self._stated[i], self._accumulators[i]
            average = self._averages.get(i)
            shared = None if average is None else accumulator.from_average(own[average])
            if shared is None:
                argument, kept = _inputs(call, batch)
                codes = grouping.codes if kept is None else grouping.codes[kept]
                shared = accumulator.partial(argument, codes, grouping.groups)
            own[i] = shared
        return CpuGroups(grouping.keys, grouping.groups, tuple(own[i] for i in range(len(self._stated))))

    def merge(self, states: Sequence[CpuGroups], *, repeated: bool = False) -> CpuGroups:
        """One state of several, in the rows' order."""
        if len(states) == 1 and not repeated:
            return states[0]
        return self._merge_by(_group_states(states), states)

    def splice(self, states: Sequence[CpuGroups], spread: Spread = one_by_one) -> list[CpuGroups] | None:
        """As many states, none of which has a key of another one, where few groups change for that.

        None where many would, so that merging is worth it. Groups are in no order. `spread`: how states are
        looked at, and changed.
        """
        shared = shared_groups([state.keys for state in states], spread) if self._keys else None
        if shared is None:
            return None
        touched = [i for i, places in enumerate(shared) if len(places)]
        if not touched:
            return list(states)
        pieces = [_rows_of_state(states[i], shared[i]) for i in touched]
        grouping = _group_states(pieces)
        merged = self._merge_by(grouping, pieces)
        # Groups are numbered as they first appear: those that a state has first follow each other.
        ends = np.cumsum([piece.groups for piece in pieces])
        firsts = [0, *(int(grouping.codes[:end].max()) + 1 for end in ends)]

        def put_together(change: tuple[CpuGroups, NDArray[np.int64], int, int]) -> CpuGroups:
            state, places, start, end = change
            rest = _drop_groups(state, places)
            own = _slice_of_state(merged, start, end)
            return self._concatenate([rest, own]) if own.groups else rest

        spliced = list(states)
        changes = ((states[i], shared[i], firsts[n], firsts[n + 1]) for n, i in enumerate(touched))
        with closing(spread(put_together, changes)) as changed:
            for i, state in zip(touched, changed, strict=True):
                spliced[i] = state
        return spliced

    def split(self, state: CpuGroups, count: int, level: int, *, apart: bool = False) -> list[CpuGroups]:
        """The groups by bits of their keys' hashes: a byte for each level."""
        order, ends = partition_rows(state.keys, state.groups, count, level)
        bounds = list(zip([0, *ends[:-1]], ends, strict=True))
        together = count
        if apart:
            together = 1 if state.groups >= _SMALL_PIECE * count else _TOGETHER
        pieces: list[CpuGroups] = []
        for first in range(0, count, together):
            some = bounds[first : first + together]
            begin = some[0][0]
            whole = _rows_of_state(state, order[begin : some[-1][1]])
            pieces += _slices_of_state(whole, [(start - begin, end - begin) for start, end in some])
        return pieces

    def rollup(self, state: CpuGroups, keys: Sequence[int], number: int) -> CpuGroups:
        """The groups by some of the keys, and a number."""
        kept, groups, aggregates = state.keys, state.groups, state.aggregates
        if len(keys) < len(self._keys):
            grouping = group_rows([state.keys[i] for i in keys], state.groups)
            # Without keys there is one group even of none, which has no place among those of rows.
            groups = grouping.groups if state.groups else 0
            aggregates = tuple(
                accumulator.merge(own, grouping.codes, groups)
                for accumulator, own in zip(self._accumulators, state.aggregates, strict=True)
            )
            found = dict(zip(keys, grouping.keys, strict=True))
            kept = tuple(found.get(i, nulls(groups, key.type)) for i, key in enumerate(state.keys))
        own_number = as_column(constant(number, pa.int64()), groups)
        return CpuGroups((*kept[: len(self._keys)], own_number), groups, aggregates)

    def to_arrow(self, state: CpuGroups) -> pa.RecordBatch:
        """Keys and state columns; a column's name says whose it is, and whether it was numpy's."""
        columns: list[Any] = list(state.keys)
        names = ["key"] * len(columns)
        for aggregate, own in enumerate(state.aggregates):
            for column in self._accumulators[aggregate].unfold(own):
                columns.append(column)
                names.append(f"{aggregate} {'arrow' if isinstance(column, pa.Array) else 'numpy'}")
        return pa.RecordBatch.from_arrays(columns, names=names)

    def from_arrow(self, batch: pa.RecordBatch) -> CpuGroups:
        """The state of its columns."""
        keys: list[Column] = []
        aggregates: list[list[StateColumn]] = [[] for _ in self._stated]
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name == "key":
                keys.append(column)
            else:
                aggregate, kind = name.split()
                plain = kind == "numpy"
                aggregates[int(aggregate)].append(column.to_numpy(zero_copy_only=False) if plain else column)
        return CpuGroups(tuple(keys), batch.num_rows, tuple(map(tuple, aggregates)))

    def value_count(self, state: CpuGroups, call: int) -> int:
        """Values in all lists of a call."""
        return len(flatten_lists(self._lists(state, call)))

    def values(self, state: CpuGroups, call: int, start: int, length: int) -> pa.RecordBatch:
        """Some of a call's values, each beside the keys of its group."""
        lists = self._lists(state, call)
        found = flatten_lists(lists).slice(start, length)
        groups = owning_lists(lists, start, len(found))
        inputs = len(self._calls[call].arguments) + len(self._calls[call].order)
        columns = cast("pa.StructArray", found).flatten() if inputs > 1 else [found]
        return make_batch([*(take(key, groups) for key in state.keys), *columns], len(found))

    def drop_values(self, state: CpuGroups, calls: Sequence[int]) -> CpuGroups:
        """The state with empty lists for those calls."""
        aggregates = list(state.aggregates)
        for call in calls:
            nothing = nulls(0, flatten_lists(self._lists(state, call)).type)
            aggregates[self._places[call]] = (make_lists(nothing, np.zeros(state.groups, np.int64)),)
        return CpuGroups(state.keys, state.groups, tuple(aggregates))

    def final(self, state: CpuGroups) -> pa.RecordBatch:
        """Keys, then aggregates."""
        columns = [as_type(key, e.type) for key, e in zip(state.keys, self._keys, strict=True)]
        for call, accumulator, place in zip(self._calls, self._answering, self._places, strict=True):
            columns.append(as_type(accumulator.final(state.aggregates[place]), call.type))
            assert columns[-1].type == call.type
        return make_batch(columns, state.groups)

    def _merge_by(self, grouping: Grouping, states: Sequence[CpuGroups]) -> CpuGroups:
        aggregates = tuple(
            accumulator.merge(self._state_columns(states, i), grouping.codes, grouping.groups)
            for i, accumulator in enumerate(self._accumulators)
        )
        return CpuGroups(grouping.keys, grouping.groups, aggregates)

    def _concatenate(self, states: Sequence[CpuGroups]) -> CpuGroups:
        """One state of several that have no key in common."""
        aggregates = tuple(self._state_columns(states, i) for i in range(len(self._accumulators)))
        return CpuGroups(_joined_keys(states), sum(state.groups for state in states), aggregates)

    def _state_columns(self, states: Sequence[CpuGroups], aggregate: int) -> StateColumns:
        """An aggregate's states behind each other."""
        aligned = self._accumulators[aggregate].align([state.aggregates[aggregate] for state in states])
        return tuple(concatenate_state_columns(columns) for columns in zip(*aligned, strict=True))

    def _lists(self, state: CpuGroups, call: int) -> Column:
        (lists,) = state.aggregates[self._places[call]]
        assert isinstance(lists, pa.Array)
        return lists


def _states(
    calls: Sequence[AggregateCall], accumulators: Sequence[Accumulator]
) -> tuple[list[int], list[int]]:
    """The calls that have states of their own, and for each call which of these states answers it."""
    stated: list[int] = []
    places: list[int] = []
    known: dict[object, int] = {}
    for i, (call, accumulator) in enumerate(zip(calls, accumulators, strict=True)):
        shared = accumulator.state
        key = i if shared is None else (shared, call.arguments, call.filter)
        if key not in known:
            known[key] = len(stated)
            stated.append(i)
        places.append(known[key])
    return stated, places


def _averages(calls: Sequence[AggregateCall]) -> dict[int, int]:
    """For sums and counts the average of the same argument over the same rows, which knows both."""
    averages = {
        (call.arguments, call.filter): i
        for i, call in enumerate(calls)
        if call.function == "avg" and not call.order
    }
    return {
        i: averages[call.arguments, call.filter]
        for i, call in enumerate(calls)
        if call.function in ("sum", "count") and not call.order and (call.arguments, call.filter) in averages
    }


def _inputs(call: AggregateCall, batch: pa.RecordBatch) -> tuple[Column, Codes | None]:
    """The argument (nulls where there is none) over the rows that count, and their positions (None: all)."""
    kept = None
    if call.filter is not None:
        (mask,) = evaluate_columns([call.filter], batch)
        kept = np.flatnonzero(boolean_values(mask))
        # Before the argument is computed: it must not fail for rows that the filter drops.
        batch = take_batch(batch, kept)
    return call_inputs(call, batch), kept


def call_inputs(call: AggregateCall, batch: pa.RecordBatch) -> Column:
    """What the call's accumulator takes: arguments and sort keys, or nulls where it has none.

    Raises:
        ExecutionError: one of them cannot be computed.
    """
    inputs = [*call.arguments, *(key.expression for key in call.order)]
    if not inputs:
        return nulls(batch.num_rows, pa.null())
    return pack_struct([decode_dictionary(column) for column in evaluate_columns(inputs, batch)])


def _group_states(states: Sequence[CpuGroups]) -> Grouping:
    return group_rows(_joined_keys(states), sum(state.groups for state in states))


def _joined_keys(states: Sequence[CpuGroups]) -> tuple[Column, ...]:
    return tuple(concatenate_columns([s.keys[i] for s in states]) for i in range(len(states[0].keys)))


def _drop_groups(state: CpuGroups, places: NDArray[np.int64]) -> CpuGroups:
    """The other groups; without a copy where those are the first and the last ones."""
    first = int((places == np.arange(len(places))).sum())  # ascending: they are those that stand before a gap
    last = len(places) - first
    if last and int(places[first]) != state.groups - last:
        kept = np.ones(state.groups, np.bool_)
        kept[places] = False
        return _rows_of_state(state, np.flatnonzero(kept))
    return _slice_of_state(state, first, state.groups - last)


def _rows_of_state(state: CpuGroups, rows: NDArray[np.int64]) -> CpuGroups:
    keys = tuple(take(key, rows) for key in state.keys)
    aggregates = tuple(tuple(_take_rows(column, rows) for column in own) for own in state.aggregates)
    return CpuGroups(keys, len(rows), aggregates)


def _slice_of_state(state: CpuGroups, start: int, end: int) -> CpuGroups:
    if end - start == state.groups:
        return state
    keys = tuple(key.slice(start, end - start) for key in state.keys)
    aggregates = tuple(tuple(_slice_rows(column, start, end) for column in own) for own in state.aggregates)
    return CpuGroups(keys, end - start, aggregates)


def _slices_of_state(state: CpuGroups, bounds: Sequence[tuple[int, int]]) -> list[CpuGroups]:
    """Groups from each first to each last bound: a state has many, of few columns."""
    if len(bounds) == 1:
        return [_slice_of_state(state, *bounds[0])]
    keys = [[key.slice(start, end - start) for start, end in bounds] for key in state.keys]
    aggregates = [
        list(zip(*[_slices_of_column(column, bounds) for column in own], strict=True))
        if own
        else [()] * len(bounds)
        for own in state.aggregates
    ]
    each_key = list(zip(*keys, strict=True)) if keys else [()] * len(bounds)
    each_state = list(zip(*aggregates, strict=True)) if aggregates else [()] * len(bounds)
    return [
        CpuGroups(own, end - start, states)
        for own, states, (start, end) in zip(each_key, each_state, bounds, strict=True)
    ]


def _slices_of_column(column: StateColumn, bounds: Sequence[tuple[int, int]]) -> list[StateColumn]:
    if isinstance(column, pa.Array):
        return [column.slice(start, end - start) for start, end in bounds]
    return [column[start:end] for start, end in bounds]


def _take_rows(column: StateColumn, order: NDArray[np.int64]) -> StateColumn:
    if isinstance(column, pa.Array):
        return take(column, order)
    return native.gather_values(np.ascontiguousarray(column), order)  # those of programs may have gaps


def _slice_rows(column: StateColumn, start: int, end: int) -> StateColumn:
    return column.slice(start, end - start) if isinstance(column, pa.Array) else column[start:end]
