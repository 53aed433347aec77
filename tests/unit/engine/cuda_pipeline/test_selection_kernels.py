"""Generated selections against the native interpreter: the rows of which the same conditions are true."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bamquery.engine.cpu.pipeline.native_program import NativeProgram
from bamquery.engine.cuda.pipeline.program_text import ProgramKernel
from bamquery.engine.cuda.pipeline.selection_text import selection_text
from bamquery.engine.pipeline.instructions import Program
from bamquery.engine.pipeline.lowering import ProgramBuilder
from bamquery.engine.pipeline.registers import Shape
from bamquery.plan.expressions import ColumnRef
from tests.unit.engine.cpu.pipeline.expressions import BOOL, batches, expressions_of_type
from tests.unit.engine.cuda_pipeline.emulated_columns import GivenColumn, constants_of, start
from tests.unit.engine.cuda_scan.emulator import EmulatedKernel, Emulator

_EXAMPLES = 80
_VECTOR = 1024


@dataclass(frozen=True, eq=False)
class Work:
    """Conditions over a batch, and their kernel's text."""

    batch: pa.RecordBatch
    program: Program
    columns: list[GivenColumn]
    made: ProgramKernel
    flags: list[int]


def _corpus() -> list[Work]:
    """Conditions at random, the same each time: they are compiled together."""
    found: list[Work] = []

    @settings(max_examples=_EXAMPLES, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(batches(), st.data())
    def collect(batch: pa.RecordBatch, data: st.DataObject) -> None:
        builder, flags = ProgramBuilder(), []
        for _ in range(data.draw(st.integers(1, 2))):
            value = builder.add(data.draw(expressions_of_type(BOOL, 3)))
            assert value is not None
            assert value.shape is Shape.FLAG
            flags.append(value.register)
        columns = []
        for one in builder.program.inputs:
            if not isinstance(one.expression, ColumnRef):
                return
            late, narrow = len(columns) % 2 == 1, (len(columns) + batch.num_rows) % 3 != 0
            columns.append(GivenColumn(batch.column(one.expression.index), late=late, narrow=narrow))
        made = selection_text(builder.program, flags, (), [column.nullable for column in columns])
        builder.program.outputs = flags
        found.append(Work(batch, builder.program, columns, made, flags))

    collect()
    return found


def _selected(emulator: Emulator, kernel: EmulatedKernel, work: Work) -> list[int] | None:
    rows = work.batch.num_rows
    vectors = -(-rows // _VECTOR)
    bits, counts = np.full(32 * vectors, 0xABABABAB, np.uint32), np.full(vectors, 0xABABABAB, np.uint32)
    status = np.zeros(2, np.uint32)
    packed = [b"".join(column.packed for column in work.columns) or bytes(32), constants_of(work.made), rows]
    places = [bits.ctypes.data, counts.ctypes.data, status.ctypes.data]
    start(emulator, kernel, *packed, *places, grid=2, block=64)
    if status[0]:
        return None
    flags = np.unpackbits(bits.view(np.uint8), bitorder="little")
    assert not flags[rows:].any()
    assert counts.tolist() == flags.reshape(vectors, _VECTOR).sum(1).tolist()
    return [int(row) for row in np.flatnonzero(flags)]


def test_generated_selections_are_what_the_interpreter_finds_true(emulator: Emulator) -> None:
    works = _corpus()
    kernels = emulator.programs([work.made.text for work in works])
    answers = 0
    for work, kernel in zip(works, kernels, strict=True):
        found = _selected(emulator, kernel, work)
        wanted = NativeProgram(work.program, [BOOL] * len(work.flags)).evaluate(work.batch)
        if found is None:
            assert wanted is None, work.made.text
            continue
        if wanted is None:  # it rounds where the kernel says that it would
            continue
        answers += 1
        true = [row for row in range(work.batch.num_rows) if all(flag[row].as_py() for flag in wanted)]
        assert found == true, work.made.text
    assert 2 * answers > len(works), "most conditions failed: little was compared"
