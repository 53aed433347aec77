"""Generated kernels against the native interpreter: the same values of the same programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bamquery.engine.cpu.pipeline.native_program import NativeProgram
from bamquery.engine.cuda.pipeline.program_text import ProgramKernel, evaluate_text
from bamquery.engine.pipeline.instructions import Operation, Program
from bamquery.engine.pipeline.outputs import program_of
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal
from tests.unit.engine.cpu.pipeline.expressions import KINDS, batches, expressions_of_type, written
from tests.unit.engine.cuda_pipeline.emulated_columns import GivenColumn, MadeColumn, constants_of, start
from tests.unit.engine.cuda_scan.emulator import EmulatedKernel, Emulator

_EXAMPLES = 120
"""Of which about half are programs."""


@dataclass(frozen=True, eq=False)
class Work:
    """A program over a batch, and its kernel's text."""

    batch: pa.RecordBatch
    program: Program
    types: list[Any]
    columns: list[GivenColumn]
    made: ProgramKernel


def run_kernel(emulator: Emulator, kernel: EmulatedKernel, work: Work) -> list[pa.Array[Any]] | None:
    """The outputs; None where the kernel says that something is lost."""
    rows, types, made = work.batch.num_rows, work.types, work.made
    outputs = [MadeColumn(kind, rows) for kind in types]
    status = np.zeros(1 + len(types), np.uint32)
    packed = [
        b"".join(column.packed for column in work.columns) or bytes(32),
        constants_of(made),
        b"".join(output.packed for output in outputs),
        rows,
        status.ctypes.data,
    ]
    start(emulator, kernel, *packed, grid=2, block=64)
    if status[0]:
        return None
    told = zip(outputs, made.nullable, status[1:].tolist(), strict=True)
    return [output.column(nulls if nullable else None) for output, nullable, nulls in told]


def _given(program: Program, batch: pa.RecordBatch) -> list[GivenColumn]:
    found = []
    for one in program.inputs:
        assert isinstance(one.expression, ColumnRef)
        late, narrow = len(found) % 2 == 1, (len(found) + batch.num_rows) % 3 != 0
        found.append(GivenColumn(batch.column(one.expression.index), late=late, narrow=narrow))
    return found


def _corpus() -> list[Work]:
    """Programs at random, the same each time: they are compiled together."""
    found: list[Work] = []

    @settings(max_examples=_EXAMPLES, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(batches(), st.data())
    def collect(batch: pa.RecordBatch, data: st.DataObject) -> None:
        kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=2))
        some: list[Expression] = [data.draw(expressions_of_type(kind, 3)) for kind in kinds]
        made = program_of(some, 2)
        if made is None or not all(isinstance(one.expression, ColumnRef) for one in made[0].inputs):
            return
        program, places = made
        types = [some[place].type for place in places]
        columns = _given(program, batch)
        text = evaluate_text(program, types, [column.nullable for column in columns])
        found.append(Work(batch, program, types, columns, text))

    collect()
    return found


def test_what_is_worth_a_kernel() -> None:
    """Not what libcudf does in one call; a part of a date is dozens of its calls."""
    day, number = ColumnRef(0, "d", pa.date32()), ColumnRef(1, "n", pa.int64())
    year = Call("date_part", (Literal(pa.scalar("year")), day), pa.int64())
    assert program_of([Call("add", (number, number), pa.int64())], 2) is None
    assert program_of([year], 2) is not None


def test_generated_kernels_compute_what_the_interpreter_does(emulator: Emulator) -> None:
    works = _corpus()
    kernels = emulator.programs([work.made.text for work in works])
    answers = 0
    for work, kernel in zip(works, kernels, strict=True):
        found = run_kernel(emulator, kernel, work)
        rounds = any(step.operation is Operation.DECIMAL_TO_DOUBLE for step in work.program.steps)
        wanted = NativeProgram(work.program, work.types).evaluate(work.batch)
        if found is None:
            assert wanted is None or rounds, work.made.text
            continue
        assert wanted is not None, work.made.text
        answers += 1
        assert written(found) == written(wanted), work.made.text
    assert 2 * answers > len(works), "most programs failed: little was compared"
