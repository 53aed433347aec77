"""Aggregate calls as programs: their arguments, filters and states in one pass over a chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.accumulator import Accumulator, Gathered, StateColumns
from bamquery.engine.cpu.keys.grouping import Grouping
from bamquery.engine.cpu.pipeline.native_program import NativeProgram
from bamquery.engine.cpu.stored_frame import StoredFrame
from bamquery.engine.pipeline.aggregate_steps import aggregate_step
from bamquery.engine.pipeline.instructions import AggregateStep
from bamquery.engine.pipeline.lowering import ProgramBuilder
from bamquery.plan.expressions import AggregateCall

_MOST_CODES = 2**31


class CompiledAggregates:
    """Those of some calls that a program computes."""

    def __init__(self, calls: Sequence[AggregateCall], accumulators: Sequence[Accumulator]) -> None:
        builder = ProgramBuilder()
        self._accumulators = tuple(accumulators)
        self._types = [call.arguments[0].type if call.arguments else pa.null() for call in calls]
        steps: dict[AggregateStep, int] = {}
        self._places: dict[int, int] = {}
        for i, (call, accumulator) in enumerate(zip(calls, accumulators, strict=True)):
            step = aggregate_step(builder, call, accumulator.program_kind(call))
            if step is not None:
                self._places[i] = steps.setdefault(step, len(steps))
        builder.program.aggregates = list(steps)
        self._program = NativeProgram(builder.program) if steps else None

    def describe(self, states: int) -> str:
        """What profiles say of the program, where there are so many states."""
        if self._program is None:
            return f"none of {states} aggregates"
        if self._program.has_failed:
            return "given up: a number does not fit 64 bits, or an input cannot be computed for all rows"
        return f"{len(self._places)} of {states} aggregates"

    def run(self, frame: pa.RecordBatch | StoredFrame, grouping: Grouping) -> Mapping[int, StateColumns]:
        """States by number of their call; none where the program cannot compute them."""
        if self._program is None or grouping.groups < 1 or grouping.groups >= _MOST_CODES:
            return {}
        codes: NDArray[Any] | None = None
        if grouping.keys:
            codes = np.ascontiguousarray(grouping.codes, np.int32)
        states = self._program.aggregate(frame, codes, grouping.groups)
        if states is None:
            return {}
        return {
            i: self._accumulators[i].from_program(self._types[i], Gathered(*states[place]))
            for i, place in self._places.items()
        }
