"""Generated kernels against the native interpreter: the same values of the same programs."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bamquery.engine.cpu.pipeline.native_program import NativeProgram
from bamquery.engine.cuda.pipeline.program_text import ProgramKernel, evaluate_text
from bamquery.engine.pipeline.instructions import Operation, Program
from bamquery.engine.pipeline.outputs import program_of
from bamquery.plan.expressions import ColumnRef, Expression
from tests.unit.engine.cpu.pipeline.expressions import KINDS, batches, expressions_of_type, written
from tests.unit.engine.cuda_pipeline.emulated_columns import GivenColumn, MadeColumn
from tests.unit.engine.cuda_scan.emulator import EmulatedKernel, Emulator

_PROGRAMS = 24
"""That are compiled together."""


def _run(
    kernel: EmulatedKernel, made: ProgramKernel, columns: list[GivenColumn], types: list[Any], rows: int
) -> list[pa.Array[Any]] | None:
    """The outputs; None where the kernel says that something is lost."""
    outputs = [MadeColumn(kind, rows) for kind in types]
    status = np.zeros(1 + len(types), np.uint32)
    packed = [
        b"".join(column.packed for column in columns) or bytes(24),
        struct.pack(f"<{len(made.constants)}q", *made.constants) or bytes(8),
        b"".join(output.packed for output in outputs),
        rows.to_bytes(8, "little"),
        status.ctypes.data.to_bytes(8, "little"),
    ]
    assert [len(one) for one in packed] == list(kernel.sizes)
    kernel.run(packed, 2, 64)
    if status[0]:
        return None
    told = zip(outputs, made.nullable, status[1:].tolist(), strict=True)
    return [output.column(nulls if nullable else None) for output, nullable, nulls in told]


def _given(program: Program, batch: pa.RecordBatch) -> list[GivenColumn]:
    found = []
    for one in program.inputs:
        assert isinstance(one.expression, ColumnRef)
        found.append(GivenColumn(batch.column(one.expression.index)))
    return found


@settings(
    max_examples=4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
@given(batches(), st.data())
def test_generated_kernels_compute_what_the_interpreter_does(
    emulator: Emulator, batch: pa.RecordBatch, data: st.DataObject
) -> None:
    programs, made, given_columns = [], [], []
    while len(programs) < _PROGRAMS:
        kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=2))
        some: list[Expression] = [data.draw(expressions_of_type(kind, 3)) for kind in kinds]
        found = program_of(some)
        if found is None or not all(isinstance(one.expression, ColumnRef) for one in found[0].inputs):
            continue
        program, places = found
        types = [some[place].type for place in places]
        columns = _given(program, batch)
        programs.append((program, types))
        given_columns.append(columns)
        made.append(evaluate_text(program, types, [column.nullable for column in columns]))
    kernels = emulator.programs([one.text for one in made])
    answers = 0
    for (program, types), columns, kernel, text in zip(programs, given_columns, kernels, made, strict=True):
        found_here = _run(kernel, text, columns, types, batch.num_rows)
        rounds = any(step.operation is Operation.DECIMAL_TO_DOUBLE for step in program.steps)
        wanted = NativeProgram(program, types).evaluate(batch)
        if found_here is None:
            assert wanted is None or rounds, text.text
            continue
        assert wanted is not None, text.text
        answers += 1
        assert written(found_here) == written(wanted), text.text
    assert answers, "all programs failed: nothing was compared"
