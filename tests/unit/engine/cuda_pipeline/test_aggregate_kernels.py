"""Kernels that gather aggregates, against the native interpreter: the same words, however added up."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bamquery.engine.cpu.pipeline.native_program import NativeProgram
from bamquery.engine.cuda.pipeline.aggregate_text import OwnCells, aggregate_text
from bamquery.engine.cuda.pipeline.cell_layout import CellLayout, pack_words
from bamquery.engine.cuda.pipeline.program_text import ProgramKernel
from bamquery.engine.pipeline.instructions import AggregateKind, AggregateStep, Program
from bamquery.engine.pipeline.lowering import ProgramBuilder
from bamquery.engine.pipeline.registers import Shape
from bamquery.plan.expressions import ColumnRef
from tests.unit.engine.cpu.pipeline.expressions import KINDS, batches, conditions, expressions_of_type
from tests.unit.engine.cuda_pipeline.emulated_columns import GivenColumn, constants_of, start
from tests.unit.engine.cuda_scan.emulator import EmulatedKernel, Emulator

_EXAMPLES = 60
_MOST_GROUPS = 4
_WHOLE = (AggregateKind.SUM, AggregateKind.LEAST, AggregateKind.GREATEST)
_DOUBLES = (AggregateKind.SUM_DOUBLES, AggregateKind.LEAST_DOUBLE, AggregateKind.GREATEST_DOUBLE)


@st.composite
def _programs(draw: st.DrawFn) -> Program:
    """Up to three aggregates over columns only, some of them of some rows only."""
    builder, steps = ProgramBuilder(), []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(KINDS))
        value = builder.add(draw(expressions_of_type(kind, draw(st.integers(0, 2)))))
        assert value is not None
        kinds = {Shape.WORD: _WHOLE, Shape.DOUBLE: _DOUBLES, Shape.FLAG: ()}[value.shape]
        aggregate = draw(st.sampled_from([AggregateKind.COUNT, *kinds]))
        kept = builder.add(draw(conditions(1))) if draw(st.booleans()) else None
        steps.append(AggregateStep(aggregate, value.register, None if kept is None else kept.register))
    builder.program.aggregates = list(dict.fromkeys(steps))
    return builder.program


@dataclass(frozen=True, eq=False)
class _Work:
    """A program, its kernel's text, and groups of rows."""

    batch: pa.RecordBatch
    program: Program
    columns: list[GivenColumn]
    made: tuple[ProgramKernel, CellLayout]
    own: bool
    groups: int
    codes: NDArray[np.int32]


def _cleared(emulator: Emulator, layout: CellLayout, groups: int) -> NDArray[np.int64]:
    words = np.full((len(layout.kinds), groups), 77, np.int64)
    clear = emulator.kernel("pipeline/group_cells", "cells_clear", ())
    packed = [_cells(words), pack_words(layout.kinds, ()), groups.to_bytes(8, "little")]
    assert [len(one) for one in packed] == list(clear.sizes)
    clear.run(packed, 1, 32)
    return words


def _cells(words: NDArray[np.int64]) -> bytes:
    return struct.pack("<Qqq", words.ctypes.data, words.shape[1], 1)


def _gather(
    emulator: Emulator, kernel: EmulatedKernel, work: _Work, codes: NDArray[np.int32] | None, in_block: bool
) -> NDArray[np.int64] | None:
    """Words of the groups of all rows; None where the kernel says that something is lost."""
    text, layout = work.made
    groups = 1 if codes is None else work.groups
    words, status = _cleared(emulator, layout, groups), np.zeros(1, np.uint32)
    packed = [
        b"".join(column.packed for column in work.columns) or bytes(32),
        constants_of(text),
        0 if codes is None else codes.ctypes.data,
        len(work.codes),
        groups,
        _cells(words),
        *([] if work.own else [in_block]),
        status.ctypes.data,
    ]
    start(emulator, kernel, *packed, grid=3, block=64)
    return None if status[0] else words


def _double(word: int) -> float:
    """Of an ordered word."""
    bits = word if word >= 0 else word ^ 0x7FFF_FFFF_FFFF_FFFF
    (number,) = struct.unpack("<d", struct.pack("<q", bits))
    return float(number)


def _is_same(kind: AggregateKind, found: NDArray[np.int64], state: Any, place: Any, group: int) -> bool:
    """Whether the words have the interpreter's value of a group in which some row counts."""
    _, values, sums = state
    word = int(found[place.value, group])
    if kind is AggregateKind.SUM:
        low, *high = (int(half) for half in np.atleast_1d(sums[group]))  # one word where that is enough
        wide = (high[0] << 64) + low % 2**64 if high else low
        return word + (int(found[place.value + 1, group]) << 32) == wide
    if kind in (AggregateKind.LEAST, AggregateKind.GREATEST):
        return word == int(values[group])
    (wanted,) = struct.unpack("<d", struct.pack("<q", int(values[group])))
    if kind is AggregateKind.SUM_DOUBLES:
        (number,) = struct.unpack("<d", struct.pack("<q", word))
        is_close = math.isclose(number, wanted, rel_tol=1e-9, abs_tol=1e-300)
        # Added in another order, large ones may be infinite, or what is left may be anything.
        return is_close or (math.isnan(number) and math.isnan(wanted)) or abs(wanted) != abs(wanted)
    number = _double(word)
    return number == wanted or (math.isnan(number) and math.isnan(wanted))


def _corpus() -> list[_Work]:
    """Programs at random, the same each time: they are compiled together."""
    works: list[_Work] = []

    @settings(max_examples=_EXAMPLES, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(batches(), st.data())
    def collect(batch: pa.RecordBatch, data: st.DataObject) -> None:
        program, rows = data.draw(_programs()), batch.num_rows
        if not all(isinstance(one.expression, ColumnRef) for one in program.inputs):
            return
        columns = _columns(program, batch)
        own = len(works) % 2 == 0
        made = aggregate_text(program, [column.nullable for column in columns], own=own)
        assert OwnCells(made[1]).count * _MOST_GROUPS * 64 * 8 <= 1 << 17
        groups = data.draw(st.integers(1, _MOST_GROUPS))
        codes = np.array(data.draw(st.lists(st.integers(0, groups - 1), min_size=rows, max_size=rows)))
        works.append(_Work(batch, program, columns, made, own, groups, codes.astype(np.int32)))

    collect()
    return works


def test_groups_have_the_interpreters_words(emulator: Emulator) -> None:
    """By cells of threads, of blocks, and of groups; without keys and by some."""
    works = _corpus()
    kernels = emulator.programs([work.made[0].text for work in works])
    compared = 0
    for work, kernel in zip(works, kernels, strict=True):
        for in_block in (False,) if work.own else (False, True):
            for codes_given in (work.codes, None):
                found = _gather(emulator, kernel, work, codes_given, in_block)
                count = work.groups if codes_given is not None else 1
                wanted = _native(work.program, work.batch, codes_given, count)
                compared += _compare(work, found, wanted)
    assert compared > len(works), "most programs failed: little was compared"


def _columns(program: Program, batch: pa.RecordBatch) -> list[GivenColumn]:
    found = []
    for one in program.inputs:
        assert isinstance(one.expression, ColumnRef)
        late, narrow = len(found) % 2 == 1, (len(found) + batch.num_rows) % 3 != 0
        found.append(GivenColumn(batch.column(one.expression.index), late=late, narrow=narrow))
    return found


def _compare(work: _Work, found: NDArray[np.int64] | None, wanted: Any) -> int:
    """How many states were compared."""
    text, layout = work.made
    if found is None or wanted is None:
        assert found is wanted, text.text  # None, both
        return 0
    for place, state in zip(layout.places, wanted, strict=True):
        assert found[place.count].tolist() == state[0].tolist(), text.text
        if place.step.kind is not AggregateKind.COUNT:
            for group in np.flatnonzero(state[0]).tolist():
                assert _is_same(place.step.kind, found, state, place, group), text.text
    return len(layout.places)


def _native(program: Program, batch: pa.RecordBatch, codes: Any, groups: int) -> Any:
    copied = Program(
        list(program.steps), list(program.inputs), list(program.aggregates), list(program.outputs)
    )
    return NativeProgram(copied).aggregate(batch, codes, groups)
