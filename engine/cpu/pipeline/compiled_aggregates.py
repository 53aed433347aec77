"""Aggregate calls as programs: their arguments, filters and states in one pass over a chunk."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.accumulator import Accumulator, Gathered, StateColumns
from bamquery.engine.cpu.keys.grouping import Grouping
from bamquery.engine.cpu.pipeline.group_keys import GroupKey, add_group_keys
from bamquery.engine.cpu.pipeline.native_program import NativeProgram, State
from bamquery.engine.cpu.stored_frame import StoredFrame
from bamquery.engine.pipeline.aggregate_steps import aggregate_step
from bamquery.engine.pipeline.instructions import AggregateKind, AggregateStep, Program
from bamquery.engine.pipeline.lowering import ProgramBuilder
from bamquery.engine.pipeline.outputs import may_be_kept
from bamquery.plan.expressions import AggregateCall, Expression

_MOST_CODES = 2**31

_KEPT: Final = 64
"""Aggregations whose programs are kept for the next statement that has the same; as expressions' are."""


@dataclass(frozen=True, slots=True, eq=False)
class _Programs:
    """What computes some calls.

    Attributes:
        program: of the calls alone; None where it computes none.
        places: of calls, by number, among its aggregates.
        grouping: the same with groups by keys; None where keys are no small numbers.
        keys: what that groups by.
    """

    program: NativeProgram | None
    places: Mapping[int, int]
    grouping: NativeProgram | None
    keys: Sequence[GroupKey]


def _make_programs(
    calls: tuple[AggregateCall, ...], kinds: tuple[AggregateKind | None, ...], keys: tuple[Expression, ...]
) -> _Programs:
    program, places = _build(calls, kinds, ())
    found = add_group_keys(ProgramBuilder(), keys) or []
    grouping = NativeProgram(_build(calls, kinds, keys)[0]) if found else None
    return _Programs(NativeProgram(program) if program.aggregates else None, places, grouping, found)


_known_programs: Final = functools.lru_cache(maxsize=_KEPT)(_make_programs)


def _build(
    calls: Sequence[AggregateCall], kinds: Sequence[AggregateKind | None], keys: Sequence[Expression]
) -> tuple[Program, dict[int, int]]:
    """A program with keys as outputs, and the places of calls among its aggregates."""
    builder = ProgramBuilder()
    add_group_keys(builder, keys)
    steps: dict[AggregateStep, int] = {}
    places: dict[int, int] = {}
    for i, (call, kind) in enumerate(zip(calls, kinds, strict=True)):
        step = aggregate_step(builder, call, kind)
        if step is not None:
            places[i] = steps.setdefault(step, len(steps))
    builder.program.aggregates = list(steps)
    return builder.program, places


class CompiledAggregates:
    """Those of some calls that a program computes, and groups where keys are few small numbers."""

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        accumulators: Sequence[Accumulator],
        keys: Sequence[Expression],
    ) -> None:
        self._accumulators = tuple(accumulators)
        self._types = [call.arguments[0].type if call.arguments else pa.null() for call in calls]
        self._calls = tuple(calls)
        kinds = tuple(one.program_kind(call) for call, one in zip(calls, accumulators, strict=True))
        inputs = [*keys, *(one for call in calls for one in call.inputs)]
        find = _known_programs if may_be_kept(inputs) else _make_programs
        found = find(self._calls, kinds, tuple(keys))
        self._places, self._keys = found.places, found.keys
        self._program = None if found.program is None else found.program.without_failures()
        self._grouping = None if found.grouping is None else found.grouping.without_failures()
        self._has_few_groups = True

    def describe(self, states: int) -> str:
        """What profiles say of the program, where there are so many states."""
        if self._program is None:
            return f"none of {states} aggregates"
        if self._program.has_failed:
            return "given up: a number does not fit 64 bits, or an input cannot be computed for all rows"
        return f"{len(self._places)} of {states} aggregates"

    def group(self, frame: pa.RecordBatch | StoredFrame) -> tuple[Grouping, dict[int, StateColumns]] | None:
        """Groups of the frame's rows and states of these as `run` has them; None where keys are not small.

        Where these are the states of all calls rows have no numbers.
        """
        if self._grouping is None or not self._has_few_groups or not frame.num_rows:
            return None
        values = [key.values_in(frame) for key in self._keys]
        if any(key.encoded is not None and one is None for key, one in zip(self._keys, values, strict=True)):
            return None
        covered = len(self._places) == len(self._calls)
        codes = np.empty(0 if covered else frame.num_rows, np.int32)
        found = self._grouping.group(frame, None if covered else codes)
        if isinstance(found, bool):
            self._has_few_groups = False
        if found is None or isinstance(found, bool):
            return None
        groups, words, states = found
        keys = tuple(key.column(*one, own) for key, one, own in zip(self._keys, words, values, strict=True))
        return Grouping(codes, groups, keys), self._state_columns(states)

    def run(self, frame: pa.RecordBatch | StoredFrame, grouping: Grouping) -> dict[int, StateColumns]:
        """States by number of their call; none where the program cannot compute them."""
        if self._program is None or grouping.groups < 1 or grouping.groups >= _MOST_CODES:
            return {}
        codes: NDArray[Any] | None = None
        if grouping.keys:
            codes = np.ascontiguousarray(grouping.codes, np.int32)
        states = self._program.aggregate(frame, codes, grouping.groups)
        return {} if states is None else self._state_columns(states)

    def _state_columns(self, states: Sequence[State]) -> dict[int, StateColumns]:
        return {
            i: self._accumulators[i].from_program(self._types[i], Gathered(*states[place]))
            for i, place in self._places.items()
        }
