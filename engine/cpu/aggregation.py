"""GROUP BY on this device: partial states of chunks, merged, then made into rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bamquery.engine.cpu.aggregates.accumulator import (
    Accumulator,
    Codes,
    Part,
    Parts,
    concatenate_parts,
)
from bamquery.engine.cpu.aggregates.registry import ACCUMULATORS
from bamquery.engine.cpu.expressions import evaluate_columns
from bamquery.engine.cpu.frames import as_type, concatenate_columns, decoded, make_batch, take_batch
from bamquery.engine.cpu.grouping import Grouping, group_rows
from bamquery.engine.cpu.kernels import Column, booleans_of, compute, nulls, take
from bamquery.plan.expressions import AggregateCall, Expression

_INDIFFERENT_TO_REPEATS = frozenset(("min", "max", "bool_and", "bool_or", "any_value", "first", "last"))
"""Functions for which DISTINCT changes nothing."""


@dataclass(frozen=True, slots=True)
class CpuGroups:
    """States of some groups.

    Attributes:
        keys: the groups' keys, decoded and distinct, in order of first appearance.
        groups: how many.
        parts: the state of each aggregate without DISTINCT, in the calls' order.
        distinct: for each aggregate with DISTINCT, the distinct (keys, argument), as groups without states.
    """

    keys: tuple[Column, ...]
    groups: int
    parts: tuple[Parts, ...]
    distinct: tuple[CpuGroups, ...] = ()

    @property
    def entries(self) -> int:
        """Groups, and distinct arguments."""
        return self.groups + sum(inner.groups for inner in self.distinct)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        arrays: list[Part] = [*self.keys, *(part for parts in self.parts for part in parts)]
        return sum(array.nbytes for array in arrays) + sum(inner.nbytes for inner in self.distinct)


class CpuAggregation:
    """Keys and aggregate calls; see `bamquery.engine.device.Aggregation`."""

    def __init__(self, keys: Sequence[Expression], calls: Sequence[AggregateCall]) -> None:
        self._keys = tuple(keys)
        self._calls = tuple(calls)
        self._accumulators = [_accumulator(call) for call in self._calls]
        self._is_distinct = [
            call.distinct and call.function not in _INDIFFERENT_TO_REPEATS for call in self._calls
        ]

    def partial(self, batch: pa.RecordBatch) -> CpuGroups:
        """The state of one frame's rows."""
        keys = evaluate_columns(self._keys, batch)
        grouping = group_rows(keys, batch.num_rows)
        parts: list[Parts] = []
        distinct: list[CpuGroups] = []
        for call, accumulator, is_distinct in self._each():
            argument, kept = _inputs(call, batch)
            if is_distinct:
                own = keys if kept is None else [take(key, kept) for key in keys]
                distinct.append(_distinct_rows(own, argument))
            else:
                codes = grouping.codes if kept is None else grouping.codes[kept]
                parts.append(accumulator.partial(argument, codes, grouping.groups))
        return CpuGroups(grouping.keys, grouping.groups, tuple(parts), tuple(distinct))

    def merge(self, states: Sequence[CpuGroups]) -> CpuGroups:
        """One state of several, in the rows' order."""
        if len(states) == 1:
            return states[0]
        grouping = _group_states(states)
        accumulators = [a for _, a, is_distinct in self._each() if not is_distinct]
        parts = tuple(
            accumulator.merge(_parts_of(states, i), grouping.codes, grouping.groups)
            for i, accumulator in enumerate(accumulators)
        )
        distinct = tuple(
            _merge_distinct([state.distinct[i] for state in states]) for i in range(len(states[0].distinct))
        )
        return CpuGroups(grouping.keys, grouping.groups, parts, distinct)

    def final(self, state: CpuGroups) -> pa.RecordBatch:
        """Keys, then aggregates."""
        parts, distinct = iter(state.parts), iter(state.distinct)
        columns = [as_type(key, e.type) for key, e in zip(state.keys, self._keys, strict=True)]
        for call, accumulator, is_distinct in self._each():
            if is_distinct:
                inner = next(distinct)
                codes = _codes_in(state, inner)
                value = accumulator.final(accumulator.partial(inner.keys[-1], codes, state.groups))
            else:
                value = accumulator.final(next(parts))
            columns.append(as_type(value, call.type))
            assert columns[-1].type == call.type
        return make_batch(columns, state.groups)

    def _each(self) -> list[tuple[AggregateCall, Accumulator, bool]]:
        return list(zip(self._calls, self._accumulators, self._is_distinct, strict=True))


def _inputs(call: AggregateCall, batch: pa.RecordBatch) -> tuple[Column, Codes | None]:
    """The argument (nulls where there is none) over the rows that count, and their positions (None: all)."""
    kept = None
    if call.filter is not None:
        (mask,) = evaluate_columns([call.filter], batch)
        kept = np.flatnonzero(booleans_of(mask))
        # Before the argument is computed: it must not fail for rows that the filter drops.
        batch = take_batch(batch, kept)
    if not call.arguments:
        return nulls(batch.num_rows, pa.null()), kept
    (argument,) = evaluate_columns(call.arguments, batch)
    return decoded(argument), kept


def _accumulator(call: AggregateCall) -> Accumulator:
    argument = call.arguments[0].type if call.arguments else pa.null()
    if isinstance(argument, pa.DictionaryType):
        argument = argument.value_type
    return ACCUMULATORS[call.function](argument, call.type)


def _distinct_rows(keys: Sequence[Column], argument: Column) -> CpuGroups:
    """Distinct (keys, argument) where the argument is not null."""
    columns = [*keys, argument]
    if argument.null_count:
        present = compute("is_valid", argument)
        columns = [column.filter(present) for column in columns]
    grouping = group_rows(columns, len(columns[0]))
    return CpuGroups(grouping.keys, grouping.groups, ())


def _merge_distinct(states: Sequence[CpuGroups]) -> CpuGroups:
    grouping = _group_states(states)
    return CpuGroups(grouping.keys, grouping.groups, ())


def _group_states(states: Sequence[CpuGroups]) -> Grouping:
    keys = [concatenate_columns([s.keys[i] for s in states]) for i in range(len(states[0].keys))]
    return group_rows(keys, sum(state.groups for state in states))


def _parts_of(states: Sequence[CpuGroups], aggregate: int) -> Parts:
    count = len(states[0].parts[aggregate])
    return tuple(concatenate_parts([state.parts[aggregate][i] for state in states]) for i in range(count))


def _codes_in(outer: CpuGroups, inner: CpuGroups) -> Codes:
    """For each distinct (keys, argument), the number that its keys have in the outer state.

    The outer keys are distinct and come first, so they are numbered as they stand.
    """
    keys = [concatenate_columns([o, i]) for o, i in zip(outer.keys, inner.keys[:-1], strict=True)]
    return group_rows(keys, outer.groups + inner.groups).codes[outer.groups :]
