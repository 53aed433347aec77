"""A program on a GPU: its kernels, and their launches over frames."""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pylibcudf as plc

from bamquery.engine.cuda.expressions.evaluation import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame, column_from_buffers
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.pipeline.aggregate_text import OwnCells, aggregate_text
from bamquery.engine.cuda.pipeline.cell_layout import MOST_WORDS, CellLayout
from bamquery.engine.cuda.pipeline.group_cells import GroupCells
from bamquery.engine.cuda.pipeline.program_text import ProgramKernel, evaluate_text, pad_constants
from bamquery.engine.pipeline.instructions import Program
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import ColumnRef

_MOST_FAILURES: Final = 2
"""Chunks after which a program that fails is not tried again: it costs as much as the operators."""
_OWN_THREADS: Final = 128
_WORD: Final = 8
_OWN_BYTES: Final = 96 << 10
"""Of a block whose threads have cells of their own: two of them are at work beside each other."""
_BLOCK_BYTES: Final = 32 << 10
"""Of a block that has cells."""
_VALIDITY_BYTES: Final = 64
"""Bitmaps have a multiple of so many bytes."""
_MOST_COLUMNS: Final = 64
"""That are loaded, or made: kernels take 4 KiB of parameters."""


@dataclass(frozen=True)
class _InputColumns:
    """Columns that a program loads, as kernels take them, and which of them have nulls."""

    columns: tuple[plc.Column, ...]
    packed: bytes
    nullable: tuple[bool, ...]


class GpuProgram:
    """Runs a program over frames; thread-safe. What it cannot compute, it says no to: `None`."""

    def __init__(self, program: Program, types: Sequence[pa.DataType] = ()) -> None:
        """`types`: of the outputs, as columns."""
        self._program = program
        self._types = tuple(types)
        given = [one.expression for one in program.inputs]
        self._computed = [expression for expression in given if not isinstance(expression, ColumnRef)]
        self._evaluating: dict[tuple[bool, ...], ProgramKernel] = {}
        self._aggregating: dict[tuple[tuple[bool, ...], bool], tuple[ProgramKernel, CellLayout]] = {}
        self._lock = threading.Lock()
        self._failures = 0

    @property
    def fits(self) -> bool:
        """Whether kernels take so many columns, and gather so many words."""
        if max(len(self._program.inputs), len(self._program.outputs)) > _MOST_COLUMNS:
            return False
        if not self._program.aggregates:
            return True
        return len(self.layout((True,) * len(self._program.inputs)).kinds) <= MOST_WORDS

    @property
    def is_given_up(self) -> bool:
        """Whether it has failed so often that it is not asked any more."""
        return self._failures >= _MOST_FAILURES

    @property
    def has_failed(self) -> bool:
        """Whether some chunk had to be computed otherwise."""
        return self._failures > 0

    def evaluate(self, kernels: Kernels, frame: CudaFrame) -> list[plc.Column] | None:
        """The outputs for each of at least one row; the host waits."""
        given = self._input_columns(kernels, frame)
        if given is None:
            return None
        made = self._evaluate_kernel(given.nullable)
        session, rows = kernels.session, frame.rows
        buffers, bitmaps, packed = [], [], b""
        for kind, nullable in zip(self._types, made.nullable, strict=True):
            values = session.allocate(rows * plc.types.size_of(device_type(kind)), "computed values")
            bits = session.allocate(_bitmap_bytes(rows), "computed values") if nullable else None
            buffers.append(values)
            bitmaps.append(bits)
            packed += struct.pack("<QQ", values.ptr, 0 if bits is None else bits.ptr)
        status = session.read_back.take(1 + len(self._types))
        launcher = session.launcher
        launcher.start(
            launcher.program(made.text),
            *(given.packed, pack_constants(made), packed, rows, status.address),
            grid=launcher.grid(rows),
            stream=session.driver_stream,
        )
        lost, *nulls = session.read_back.read(status)
        if lost:
            self._note_failure()
            return None
        return [
            column_from_buffers(kind, rows, values, validity=bits, null_count=missing)
            for kind, values, bits, missing in zip(self._types, buffers, bitmaps, nulls, strict=True)
        ]

    def aggregate(
        self, kernels: Kernels, frame: CudaFrame, codes: plc.Column | None, groups: int
    ) -> GroupCells | None:
        """What its aggregates gather of at least one row; the host waits.

        `codes`: each row's group, int32, never null (None: all are group 0).
        """
        given = self._input_columns(kernels, frame)
        if given is None:
            return None
        _, layout = self._aggregate_kernel(given.nullable, own=False)
        cells = OwnCells(layout).count
        own = groups * cells * _OWN_THREADS * _WORD <= _OWN_BYTES
        made, layout = self._aggregate_kernel(given.nullable, own=own)
        session, rows = kernels.session, frame.rows
        made_cells = GroupCells.cleared(session, layout, groups)
        shared = groups * len(layout.kinds) * _WORD
        in_block = not own and shared <= _BLOCK_BYTES
        status = session.read_back.take(1)
        launcher, where = session.launcher, codes_address(codes)
        launcher.start(
            launcher.program(made.text),
            *(given.packed, pack_constants(made), where, rows, groups, made_cells.packed()),
            *(() if own else (in_block,)),
            status.address,
            grid=launcher.grid(rows, _OWN_THREADS, 8) if own else launcher.grid(rows, most=8),
            block=_OWN_THREADS if own else 256,
            shared_bytes=groups * cells * _OWN_THREADS * _WORD if own else shared if in_block else 0,
            stream=session.driver_stream,
        )
        if session.read_back.read(status)[0]:
            self._note_failure()
            return None
        return made_cells

    def layout(self, nullable: Sequence[bool]) -> CellLayout:
        """The words that are gathered where these inputs have nulls."""
        return self._aggregate_kernel(tuple(nullable), own=False)[1]

    def _note_failure(self) -> None:
        with self._lock:
            self._failures += 1

    def _evaluate_kernel(self, nullable: tuple[bool, ...]) -> ProgramKernel:
        found = self._evaluating.get(nullable)
        if found is None:
            found = self._evaluating[nullable] = evaluate_text(self._program, self._types, nullable)
        return found

    def _aggregate_kernel(self, nullable: tuple[bool, ...], *, own: bool) -> tuple[ProgramKernel, CellLayout]:
        found = self._aggregating.get((nullable, own))
        if found is None:
            found = self._aggregating[nullable, own] = aggregate_text(self._program, nullable, own=own)
        return found

    def _input_columns(self, kernels: Kernels, frame: CudaFrame) -> _InputColumns | None:
        """What a kernel takes of each input; None where one cannot be computed."""
        if self.is_given_up:
            return None
        try:
            answers = iter(evaluate_columns(kernels, self._computed, frame))
        except ExecutionError:  # of a row, perhaps, that the statement does not ask about
            self._note_failure()
            return None
        columns = []
        for one in self._program.inputs:
            column = (
                frame.columns[one.expression.index]
                if isinstance(one.expression, ColumnRef)
                else next(answers)
            )
            wanted = device_type(one.type)
            if column.type().id() != wanted.id() or column.type().scale() != wanted.scale():
                return None
            columns.append(column)
        packed = b"".join(map(pack_input, columns)) or bytes(24)
        return _InputColumns(tuple(columns), packed, tuple(column.null_count() > 0 for column in columns))


def pack_input(column: plc.Column) -> bytes:
    """An `Input` of registers.hpp: of a column of fixed width with at least one row."""
    data, mask = column.data(), column.null_mask() if column.null_count() else None
    assert data is not None
    values = int(data.ptr) + column.offset() * plc.types.size_of(column.type())
    return struct.pack("<QQq", values, 0 if mask is None else int(mask.ptr), column.offset())


def codes_address(codes: plc.Column | None) -> int:
    """Where int32 numbers begin; 0 where there are none."""
    if codes is None:
        return 0
    data = codes.data()
    assert data is not None
    return int(data.ptr) + 4 * codes.offset()


def pack_constants(made: ProgramKernel) -> bytes:
    """A `Constants` of a generated text."""
    words = pad_constants(made.constants)
    return struct.pack(f"<{len(words)}q", *words)


def _bitmap_bytes(rows: int) -> int:
    return -(-rows // (8 * _VALIDITY_BYTES)) * _VALIDITY_BYTES
