"""GROUP BY on this device: partial states of chunks, merged, then made into rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import pyarrow as pa
import pylibcudf as plc

from bamquery.data_types.type_groups import value_type
from bamquery.engine.cuda.aggregates.accumulator import (
    ReductionAggregate,
    StateColumns,
    concatenate_state_columns,
)
from bamquery.engine.cuda.aggregates.reductions import Reduction, reduce_by_codes, reduce_by_keys
from bamquery.engine.cuda.aggregates.registry import accumulator_of
from bamquery.engine.cuda.aggregates.value_lists import flatten_lists, group_codes, list_lengths, make_lists
from bamquery.engine.cuda.cache.late_columns import Held, column_of
from bamquery.engine.cuda.device_memory import memory_errors
from bamquery.engine.cuda.expressions.evaluation import evaluate_columns, repeated_parts
from bamquery.engine.cuda.frames import CudaFrame, column_bytes, frame_sharing, make_frame
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.keys.grouping import GroupCodes, group_rows
from bamquery.engine.cuda.pipeline.compiled_aggregates import compile_aggregates
from bamquery.engine.cuda.transfer.record_batches import download
from bamquery.engine.cuda.transfer.upload import upload
from bamquery.engine.cuda.vectors import Vector
from bamquery.errors import MemoryLimitError
from bamquery.plan.expressions import AggregateCall, ColumnRef, Expression

Answer = TypeVar("Answer")

_WORDS: Final = "words"
"""What state columns are called that a program gathers."""


@dataclass(frozen=True)
class CudaGroups:
    """States of some groups.

    Attributes:
        keys: the groups' keys, distinct.
        groups: how many.
        aggregates: the state of each, in the calls' order; of all together where a program gathers them.
        gathered: whether a program did.
    """

    keys: tuple[plc.Column, ...]
    groups: int
    aggregates: tuple[StateColumns, ...]
    gathered: bool = False

    @property
    def nbytes(self) -> int:
        """Memory held on the GPU."""
        return sum(map(column_bytes, self.columns()))

    def columns(self) -> list[plc.Column]:
        """Keys, then the states of all aggregates."""
        return [*self.keys, *(column for state in self.aggregates for column in state)]

    def with_columns(self, columns: Sequence[plc.Column], groups: int) -> CudaGroups:
        """Others groups' states, of the same form, from their columns."""
        place = len(self.keys)
        aggregates: list[StateColumns] = []
        for own in self.aggregates:
            aggregates.append(tuple(columns[place : place + len(own)]))
            place += len(own)
        return CudaGroups(tuple(columns[: len(self.keys)]), groups, tuple(aggregates), self.gathered)


class CudaAggregation:
    """Keys and aggregate calls; see `bamquery.engine.device.Aggregation`.

    States keep their groups in order of first appearance, but for those that `split` gives.
    """

    def __init__(
        self,
        kernels: Kernels,
        keys: Sequence[Expression],
        calls: Sequence[AggregateCall],
        *,
        programs: bool = True,
    ) -> None:
        """`programs`: a program computes all calls, where there is one."""
        self._kernels = kernels
        self._keys = tuple(keys)
        self._calls = tuple(calls)
        assert not any(call.distinct for call in self._calls), "operators make arguments distinct"
        inputs = [each for call in self._calls for each in call.inputs]
        self._repeated = repeated_parts([*self._keys, *inputs])
        self._accumulators = tuple(accumulator_of(call) for call in self._calls)
        reducing = [one for one in self._accumulators if isinstance(one, ReductionAggregate)]
        all_rows = not any(call.filter is not None for call in self._calls)
        self._reducing = reducing if all_rows and len(reducing) == len(self._calls) else None
        self._uses_programs = programs
        self._compiled = compile_aggregates(self._calls) if programs else None

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
        """What profiles say of the program; None where programs are off."""
        if not self._uses_programs:
            return None
        if self._compiled is None:
            return f"none of {len(self._calls)} aggregates: it gathers all of them or none"
        return self._compiled.describe()

    def partial(self, frame: CudaFrame) -> CudaGroups:
        """The state of one frame's rows."""
        return self._run_on_gpu(lambda: self._partial(frame))

    def merge(self, states: Sequence[CudaGroups], *, repeated: bool = False) -> CudaGroups:
        """One state of several, in the rows' order."""
        if len(states) == 1 and not repeated:
            return states[0]
        return self._run_on_gpu(lambda: self._merge(states))

    def split(self, state: CudaGroups, count: int, level: int, *, apart: bool = False) -> list[CudaGroups]:
        """The groups by libcudf's hash of their keys, seeded by the level."""
        return self._run_on_gpu(lambda: self._split(state, count, level))

    def rollup(self, state: CudaGroups, keys: Sequence[int], number: int) -> CudaGroups:
        """The groups by some of the keys, and a number."""
        return self._run_on_gpu(lambda: self._rollup(state, keys, number))

    def to_arrow(self, state: CudaGroups) -> pa.RecordBatch:
        """Keys and state columns; a column's name says whose it is."""
        return self._run_on_gpu(lambda: self._to_arrow(state))

    def from_arrow(self, batch: pa.RecordBatch) -> CudaGroups:
        """The state of its columns."""
        return self._run_on_gpu(lambda: self._from_arrow(batch))

    def value_count(self, state: CudaGroups, call: int) -> int:
        """Values in all lists of a call."""
        return self._run_on_gpu(lambda: flatten_lists(self._kernels, state.aggregates[call][0]).size())

    def values(self, state: CudaGroups, call: int, start: int, length: int) -> CudaFrame:
        """Some of a call's values, each beside the keys of its group."""
        return self._run_on_gpu(lambda: self._values(state, call, start, length))

    def drop_values(self, state: CudaGroups, calls: Sequence[int]) -> CudaGroups:
        """The state with empty lists for those calls."""
        return self._run_on_gpu(lambda: self._drop_values(state, calls))

    def final(self, state: CudaGroups) -> CudaFrame:
        """Keys, then aggregates."""
        return self._run_on_gpu(lambda: self._final(state))

    def _run_on_gpu(self, compute: Callable[[], Answer]) -> Answer:
        session = self._kernels.session
        session.enter()
        with memory_errors("GROUP BY" if self._keys else "an aggregate", session.limit):
            return compute()

    def _partial(self, frame: CudaFrame) -> CudaGroups:
        with self._kernels.remembering():
            return self._state_of_rows(frame_sharing(frame, self._repeated))

    def _state_of_rows(self, frame: CudaFrame) -> CudaGroups:
        keys = _key_columns(self._kernels, self._keys, frame)
        gathered = self._gather(frame, keys)
        if gathered is not None:
            return gathered
        try:
            return self._state_by_operators(frame, keys)
        except (MemoryError, MemoryLimitError):
            if self._compiled is None or self._compiled.is_given_up:
                raise
        # What operators make between their steps has no room; a program makes nothing of the kind.
        return self._gather(frame, keys, waits=True) or self._state_by_operators(frame, keys)

    def _gather(self, frame: CudaFrame, keys: Sequence[Held], *, waits: bool = False) -> CudaGroups | None:
        """The state by the program; None where it cannot. `waits`: also for its kernel."""
        kernels = self._kernels
        if self._compiled is None or self._compiled.is_given_up:
            return None
        grouping = group_rows(kernels, keys, frame.rows)
        codes = grouping.codes
        words = self._compiled.partial(kernels, frame, codes.column, codes.groups, waits=waits)
        return None if words is None else CudaGroups(grouping.keys, codes.groups, (words,), gathered=True)

    def _state_by_operators(self, frame: CudaFrame, keys: Sequence[Held]) -> CudaGroups:
        kernels = self._kernels
        if self._reducing is not None:
            reductions = [
                accumulator.row_reductions(kernels, call_inputs(kernels, call, frame))
                for call, accumulator in zip(self._calls, self._reducing, strict=True)
            ]
            return self._reduce(keys, frame.rows, reductions, of_rows=True)
        grouping = group_rows(kernels, keys, frame.rows)
        aggregates: list[StateColumns] = []
        for call, accumulator in zip(self._calls, self._accumulators, strict=True):
            rows, codes = _inputs(kernels, call, frame, grouping.codes)
            aggregates.append(accumulator.partial(kernels, rows, codes))
        return CudaGroups(grouping.keys, grouping.codes.groups, tuple(aggregates))

    def _merge(self, states: Sequence[CudaGroups]) -> CudaGroups:
        kernels = self._kernels
        if all(state.gathered for state in states):
            return self._merge_words(states)
        states = [operators_state(kernels, self._calls, state) for state in states]
        keys = [kernels.concatenate([s.keys[i] for s in states]) for i in range(len(self._keys))]
        aggregates = tuple(
            concatenate_state_columns(kernels, [state.aggregates[i] for state in states])
            for i in range(len(self._calls))
        )
        return self._regroup(CudaGroups(tuple(keys), sum(state.groups for state in states), aggregates))

    def _merge_words(self, states: Sequence[CudaGroups]) -> CudaGroups:
        kernels = self._kernels
        assert self._compiled is not None
        keys = [kernels.concatenate([s.keys[i] for s in states]) for i in range(len(states[0].keys))]
        grouping = group_rows(kernels, keys, sum(state.groups for state in states))
        codes = grouping.codes
        given = [state.aggregates[0] for state in states]
        words = self._compiled.merge(kernels, given, codes.column, codes.groups)
        return CudaGroups(grouping.keys, codes.groups, (words,), gathered=True)

    def _regroup(self, states: CudaGroups) -> CudaGroups:
        """One state for all that have equal keys."""
        kernels = self._kernels
        if states.gathered:
            return self._merge_words([states])
        if self._reducing is not None:
            reductions = [
                accumulator.state_reductions(kernels, own)
                for accumulator, own in zip(self._reducing, states.aggregates, strict=True)
            ]
            return self._reduce(states.keys, states.groups, reductions, of_rows=False)
        grouping = group_rows(kernels, states.keys, states.groups)
        merged = tuple(
            accumulator.merge(kernels, own, grouping.codes)
            for accumulator, own in zip(self._accumulators, states.aggregates, strict=True)
        )
        return CudaGroups(grouping.keys, grouping.codes.groups, merged)

    def _reduce(
        self,
        keys: Sequence[Held],
        rows: int,
        reductions: Sequence[Sequence[Reduction]],
        *,
        of_rows: bool,
    ) -> CudaGroups:
        """The groups of rows, or of states, by all their aggregates' reductions at once."""
        kernels = self._kernels
        assert self._reducing is not None
        every = [one for some in reductions for one in some]
        flat = list({id(one): one for one in every}.values())  # an average's sum may be a sum, too
        if flat and keys and rows and all(one.is_hashed for one in flat):
            found, reduced = reduce_by_keys(kernels, [column_of(key) for key in keys], rows, flat)
            groups = found[0].size()
        else:
            grouping = group_rows(kernels, keys, rows)
            found, groups = list(grouping.keys), grouping.codes.groups
            reduced = reduce_by_codes(kernels, grouping.codes, flat)
        found_once = dict(zip(map(id, flat), reduced, strict=True))
        aggregates: list[StateColumns] = []
        for accumulator, some in zip(self._reducing, reductions, strict=True):
            own = [found_once[id(one)] for one in some]
            aggregates.append(accumulator.state(kernels, own, of_rows=of_rows))
        return CudaGroups(tuple(found), groups, tuple(aggregates))

    def _split(self, state: CudaGroups, count: int, level: int) -> list[CudaGroups]:
        kernels = self._kernels
        if not state.groups:
            return [state] * count
        # Of the groups' numbers, since states may be lists.
        table, starts = plc.partitioning.hash_partition(
            plc.Table([*state.keys, kernels.positions(state.groups)]),
            list(range(len(state.keys))),
            count,
            seed=level,
            stream=kernels.stream,
            mr=kernels.memory,
        )
        columns = kernels.gather(state.columns(), table.columns()[-1])
        starts = list(starts)[:count]
        ends = [*starts[1:], state.groups]
        return [
            state.with_columns([kernels.slice_column(column, start, end) for column in columns], end - start)
            for start, end in zip(starts, ends, strict=True)
        ]

    def _rollup(self, state: CudaGroups, keys: Sequence[int], number: int) -> CudaGroups:
        kernels = self._kernels
        kept, groups, aggregates = state.keys[: len(self._keys)], state.groups, state.aggregates
        if len(keys) < len(self._keys) and groups:
            chosen = tuple(state.keys[i] for i in keys)
            coarser = self._regroup(CudaGroups(chosen, groups, aggregates, state.gathered))
            groups, aggregates = coarser.groups, coarser.aggregates
            found = dict(zip(keys, coarser.keys, strict=True))
            kept = tuple(
                found[i] if i in found else kernels.nulls(groups, key.type)
                for i, key in enumerate(self._keys)
            )
        own_number = kernels.repeat_scalar(kernels.number(number, pa.int64()), groups)
        return CudaGroups((*kept, own_number), groups, aggregates, state.gathered)

    def _to_arrow(self, state: CudaGroups) -> pa.RecordBatch:
        session = self._kernels.session
        names = ["key"] * len(state.keys)
        for aggregate, own in enumerate(state.aggregates):
            names += [_WORDS if state.gathered else str(aggregate)] * len(own)
        session.synchronize()
        columns = [download(session, column) for column in state.columns()]
        return pa.RecordBatch.from_arrays(columns, names=names)

    def _from_arrow(self, batch: pa.RecordBatch) -> CudaGroups:
        session = self._kernels.session
        keys: list[plc.Column] = []
        aggregates: list[list[plc.Column]] = [[] for _ in self._calls]
        gathered = _WORDS in batch.schema.names
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            place = keys if name == "key" else aggregates[0 if gathered else int(name)]
            place.append(upload(session, column))
        session.synchronize()
        some = aggregates[:1] if gathered else aggregates
        return CudaGroups(tuple(keys), batch.num_rows, tuple(map(tuple, some)), gathered)

    def _values(self, state: CudaGroups, call: int, start: int, length: int) -> CudaFrame:
        kernels = self._kernels
        lists = [flatten_lists(kernels, column) for column in state.aggregates[call]]
        stop = min(start + length, lists[0].size())
        columns = [kernels.slice_column(values, start, stop) for values in lists]
        if not state.keys:
            return make_frame(columns, stop - start)
        owners = group_codes(kernels, Vector(kernels, list_lengths(kernels, state.aggregates[call][0])))
        keys = kernels.gather(state.keys, kernels.slice_column(owners.numbers(kernels), start, stop))
        return make_frame([*keys, *columns], stop - start)

    def _drop_values(self, state: CudaGroups, calls: Sequence[int]) -> CudaGroups:
        kernels = self._kernels
        aggregates = list(state.aggregates)
        counts = Vector.full(kernels, 0, state.groups).column
        for call in calls:
            inputs = self._calls[call].inputs[: len(aggregates[call])]
            kinds = [value_type(expression.type) for expression in inputs]
            aggregates[call] = tuple(make_lists(kernels, kernels.nulls(0, kind), counts) for kind in kinds)
        return CudaGroups(state.keys, state.groups, tuple(aggregates))

    def _final(self, state: CudaGroups) -> CudaFrame:
        columns = list(state.keys)
        if state.gathered:
            assert self._compiled is not None
            columns += self._compiled.final(self._kernels, state.aggregates[0], state.groups)
            return make_frame(columns, state.groups)
        for accumulator, own in zip(self._accumulators, state.aggregates, strict=True):
            columns.append(accumulator.final(self._kernels, own))
        return make_frame(columns, state.groups)


def _key_columns(kernels: Kernels, keys: Sequence[Expression], frame: CudaFrame) -> list[Held]:
    """As `evaluate_columns`; columns of the frame as it has them."""
    if not frame.rows:
        return [*evaluate_columns(kernels, keys, frame)]
    computed = [key for key in keys if not isinstance(key, ColumnRef)]
    columns = iter(evaluate_columns(kernels, computed, frame))
    return [frame.held[key.index] if isinstance(key, ColumnRef) else next(columns) for key in keys]


def _inputs(
    kernels: Kernels, call: AggregateCall, frame: CudaFrame, codes: GroupCodes
) -> tuple[StateColumns, GroupCodes]:
    """What the call's accumulator takes, over the rows that count, and their groups."""
    if call.filter is not None and frame.rows:
        (mask,) = evaluate_columns(kernels, [call.filter], frame)
        codes, _ = codes.filter(kernels, mask)
        # Before the argument is computed: it must not fail for rows that the filter drops.
        frame = kernels.filter_frame(frame, mask)
    return call_inputs(kernels, call, frame), codes


def call_inputs(kernels: Kernels, call: AggregateCall, frame: CudaFrame) -> StateColumns:
    """A call's arguments and sort keys, or nulls where it has none.

    Raises:
        ExecutionError: one of them cannot be computed.
    """
    inputs = [*call.arguments, *(key.expression for key in call.order)]
    if not inputs:
        return (kernels.nulls(frame.rows, pa.null()),)
    return tuple(evaluate_columns(kernels, inputs, frame))


def operators_state(kernels: Kernels, calls: Sequence[AggregateCall], state: CudaGroups) -> CudaGroups:
    """The state of the calls as their accumulators have it, whoever gathered it."""
    if not state.gathered:
        return state
    compiled = compile_aggregates(tuple(calls))
    assert compiled is not None
    aggregates = compiled.operators_states(kernels, state.aggregates[0])
    return CudaGroups(state.keys, state.groups, aggregates)
