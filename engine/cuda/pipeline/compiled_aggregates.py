"""Aggregate calls as programs: arguments, filters and states of a chunk in one pass over its rows."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pylibcudf as plc

from bamquery.data_types.type_groups import value_type
from bamquery.engine.cuda.aggregates.accumulator import (
    GatheredWords,
    ReductionAggregate,
    StateColumns,
)
from bamquery.engine.cuda.aggregates.registry import accumulator_of
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.pipeline.cell_layout import CellPlace
from bamquery.engine.cuda.pipeline.gpu_program import GpuProgram
from bamquery.engine.cuda.pipeline.group_cells import (
    Finish,
    Finishing,
    GroupCells,
    finish_cells,
    merge_cells,
    start_compiling_cells,
)
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.pipeline.aggregate_steps import aggregate_step
from bamquery.engine.pipeline.instructions import AggregateKind, AggregateStep
from bamquery.engine.pipeline.lowering import ProgramBuilder
from bamquery.plan.expressions import AggregateCall

_KEPT: Final = 256
"""Programs: each is a few kilobytes."""


class CompiledAggregates:
    """Some calls that a program computes, all of them; its states are the words of their groups."""

    def __init__(
        self,
        calls: Sequence[AggregateCall],
        accumulators: Sequence[ReductionAggregate],
        steps: Sequence[AggregateStep],
        builder: ProgramBuilder,
    ) -> None:
        """See `compile_aggregates`."""
        self._calls = tuple(calls)
        self._accumulators = tuple(accumulators)
        distinct = list(dict.fromkeys(steps))
        self._of_call = [distinct.index(step) for step in steps]
        builder.program.aggregates = distinct
        self._program = GpuProgram(builder.program)
        self._layout = self._program.layout((True,) * len(builder.program.inputs))

    @property
    def fits(self) -> bool:
        """Whether kernels take so many columns and words."""
        return self._program.fits

    @property
    def is_given_up(self) -> bool:
        """Whether it has failed so often that it is not asked any more."""
        return self._program.is_given_up

    def describe(self) -> str:
        """What profiles say of the program."""
        if self._program.failure:
            return f"given up: {self._program.failure}"
        return f"{len(self._calls)} of {len(self._calls)} aggregates"

    def start_compiling(
        self, session: CudaSession, nullable: Sequence[bool | None], *, by_keys: bool
    ) -> None:
        """Begin with the kernels that states will take; see `GpuProgram.start_compiling`."""
        start_compiling_cells(session)
        self._program.start_compiling(session, nullable, by_keys=by_keys)

    def partial(
        self,
        kernels: Kernels,
        frame: CudaFrame,
        codes: plc.Column | None,
        groups: int,
        *,
        waits: bool = False,
    ) -> StateColumns | None:
        """Words of the groups of a frame's rows; None where the program cannot compute them.

        `waits`: nor while its kernel is compiled, unless it waits for that.
        """
        if not groups:
            return self._nothing(kernels)
        if not frame.rows:
            cells: GroupCells | None = GroupCells.cleared(kernels.session, self._layout, groups)
        else:
            cells = self._program.aggregate(kernels, frame, codes, groups, waits=waits)
        return None if cells is None else tuple(cells.columns(self._layout))

    def merge(
        self, kernels: Kernels, states: Sequence[StateColumns], codes: plc.Column | None, groups: int
    ) -> StateColumns:
        """One state of several; `codes`: the group of each of theirs, None where all are group 0."""
        if not groups:
            return self._nothing(kernels)
        return tuple(merge_cells(kernels.session, self._layout, states, codes, groups))

    def final(self, kernels: Kernels, words: StateColumns, groups: int) -> list[plc.Column]:
        """The calls' values."""
        if not groups:
            return [kernels.nulls(0, value_type(call.type)) for call in self._calls]
        session = kernels.session
        nulls = session.read_back.take(len(self._calls))
        made = []
        for number, (call, at) in enumerate(zip(self._calls, self._of_call, strict=True)):
            work = _finishing(call, self._layout.places[at])
            made.append(finish_cells(session, words, work, nulls.address + 4 * number))
        missing = session.read_back.read(nulls)
        return [one.column(count) for one, count in zip(made, missing, strict=True)]

    def _nothing(self, kernels: Kernels) -> StateColumns:
        """Words of no groups."""
        return tuple(kernels.nulls(0, pa.int64()) for _ in self._layout.kinds)

    def operators_states(self, kernels: Kernels, words: StateColumns) -> tuple[StateColumns, ...]:
        """The same states as the calls' accumulators have them."""
        found = []
        for call, accumulator, at in zip(self._calls, self._accumulators, self._of_call, strict=True):
            place = self._layout.places[at]
            values = words[place.value : place.value + place.width]
            gathered = GatheredWords(words[place.count], *(*values, None, None)[:2])
            kind = value_type(call.arguments[0].type) if call.arguments else pa.null()
            found.append(accumulator.from_program(kernels, kind, gathered))
        return tuple(found)


def _finishing(call: AggregateCall, place: CellPlace) -> Finishing:
    argument = value_type(call.arguments[0].type) if call.arguments else pa.null()
    kind, is_mean, unit = value_type(call.type), call.function == "avg", 1.0
    finish = Finish.WORD
    if place.step.kind is AggregateKind.COUNT:
        return Finishing(place.count, None, finish, unit, kind)
    if place.step.kind is AggregateKind.SUM:
        finish = Finish.MEAN if is_mean else Finish.DECIMAL
        unit = 10.0**argument.scale if isinstance(argument, pa.Decimal128Type) else 1.0
    elif place.step.kind is AggregateKind.SUM_DOUBLES:
        finish = Finish.MEAN_OF_DOUBLES if is_mean else Finish.DOUBLE
    elif place.step.kind in (AggregateKind.LEAST_DOUBLE, AggregateKind.GREATEST_DOUBLE):
        finish = Finish.ORDERED_DOUBLE
    return Finishing(place.value, place.count, finish, unit, kind)


@functools.lru_cache(maxsize=_KEPT)
def compile_aggregates(calls: tuple[AggregateCall, ...]) -> CompiledAggregates | None:
    """The calls as a program, kept for the next statement that has the same; None where some have none."""
    accumulators = [accumulator_of(call) for call in calls]
    builder, steps, known = ProgramBuilder(), [], []
    for call, accumulator in zip(calls, accumulators, strict=True):
        if not isinstance(accumulator, ReductionAggregate):
            return None
        step = aggregate_step(builder, call, accumulator.program_kind(call))
        if step is None:
            return None
        steps.append(step)
        known.append(accumulator)
    if not steps:
        return None
    made = CompiledAggregates(calls, known, steps, builder)
    return made if made.fits else None
