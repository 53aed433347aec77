"""A program on a GPU: its kernels, and their launches over frames."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pylibcudf as plc

from bamquery.driver.gpu.device import GpuKernel
from bamquery.engine.cuda.expressions.evaluation import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame, column_from_buffers
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.pipeline.aggregate_text import OwnCells, aggregate_text
from bamquery.engine.cuda.pipeline.cell_layout import MOST_WORDS, CellLayout
from bamquery.engine.cuda.pipeline.group_cells import GroupCells
from bamquery.engine.cuda.pipeline.input_columns import (
    InputColumn,
    answers_column,
    input_column,
    pack_inputs,
)
from bamquery.engine.cuda.pipeline.program_kernels import first_line, tell_problem
from bamquery.engine.cuda.pipeline.program_text import ProgramKernel, evaluate_text, pad_constants
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.pipeline.instructions import Input, Program
from bamquery.engine.profiling.kernel_use import note_chunk
from bamquery.errors import ExecutionError, GpuError, KernelError
from bamquery.plan.expressions import ColumnRef
from bamquery.statement_context.cancellation import check_cancelled

_MOST_FAILURES: Final = 2
"""Chunks after which a program that fails is not tried again: it costs as much as the operators."""
_MOST_PATTERNS: Final = 8
"""Of nulls, which input has some: for others there is a kernel that looks at the nulls of all."""
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


@dataclass(frozen=True, slots=True)
class Variant:
    """One of a program's kernels.

    Attributes:
        nullable: of each input, whether its nulls are looked at.
        own: whether each thread has cells of its own, where it gathers aggregates.
    """

    nullable: tuple[bool, ...]
    own: bool = False

    def looks_at(self, nullable: Sequence[bool]) -> bool:
        """Whether it computes columns of which these have nulls."""
        return all(looked or not has for looked, has in zip(self.nullable, nullable, strict=True))


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The kernel of a variant, and the seconds that compiling it took if nobody has heard of them."""

    kernel: GpuKernel
    variant: Variant
    compiled_s: float


@dataclass(frozen=True)
class _InputColumns:
    """Columns that a program loads, as kernels take them, and which of them have nulls."""

    columns: tuple[InputColumn, ...]
    packed: bytes
    nullable: tuple[bool, ...]


class GpuProgram:
    """Runs a program over frames; thread-safe. What it cannot compute, it says no to: `None`.

    A kernel that is not there yet is one such reason. It is compiled meanwhile; the operators compute the
    chunk, and later ones are the program's.
    """

    def __init__(self, program: Program, types: Sequence[pa.DataType] = ()) -> None:
        """`types`: of the outputs, as columns."""
        self._program = program
        self._types = tuple(types)
        self._evaluating: dict[Variant, ProgramKernel] = {}
        self._aggregating: dict[Variant, tuple[ProgramKernel, CellLayout]] = {}
        self._lock = threading.Lock()
        self._failures = 0
        self._problem = ""

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
    def failure(self) -> str:
        """Why some chunk had to be computed otherwise, but for kernels that were compiled; empty: none."""
        if self._problem or not self._failures:
            return self._problem
        return "a number does not fit 64 bits, or an input cannot be computed for all rows"

    def start_compiling(
        self, session: CudaSession, nullable: Sequence[bool | None], *, by_keys: bool = False
    ) -> None:
        """Begin with the kernel of frames whose columns may have nulls or not; None: not known.

        Of many groups a kernel can do all: one for few groups is begun with once they are seen to be few.
        """
        inputs = [
            nullable[one.expression.index] if isinstance(one.expression, ColumnRef) else None
            for one in self._program.inputs
        ]
        known = [one for one in inputs if one is not None]
        if len(known) < len(inputs) or self.is_given_up:
            return
        plain = Variant(tuple(known))
        if not self._program.aggregates:
            text = self._evaluate_kernel(plain).text
        else:
            own = not by_keys and self._has_own(plain, 1)
            text = self._aggregate_kernel(Variant(plain.nullable, own))[0].text
        with suppress(GpuError):  # said where it is wanted
            session.program_kernels.compilation(text)

    def evaluate(self, kernels: Kernels, frame: CudaFrame, *, waits: bool = False) -> list[plc.Column] | None:
        """The outputs for each of at least one row; the host waits.

        `waits`: also for the kernel, since the operators cannot do it.

        Raises:
            CancelledError: the thread's query was cancelled.
        """
        given = self._input_columns(kernels, frame)
        if given is None:
            return None
        session, rows = kernels.session, frame.rows
        wanted = Variant(self._pattern(given.nullable))
        found = self._find_kernel(session, wanted, given.nullable, 1, waits=waits)
        if found is None:
            return None
        made = self._evaluate_kernel(found.variant)
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
            found.kernel,
            *(given.packed, pack_constants(made), packed, rows, status.address),
            grid=launcher.grid(rows),
            stream=session.driver_stream,
        )
        lost, *nulls = session.read_back.read(status)
        note_chunk(by_kernel=not lost, compiled_s=found.compiled_s)
        if lost:
            self._note_failure()
            return None
        return [
            column_from_buffers(kind, rows, values, validity=bits, null_count=missing)
            for kind, values, bits, missing in zip(self._types, buffers, bitmaps, nulls, strict=True)
        ]

    def aggregate(
        self,
        kernels: Kernels,
        frame: CudaFrame,
        codes: plc.Column | None,
        groups: int,
        *,
        waits: bool = False,
    ) -> GroupCells | None:
        """What its aggregates gather of at least one row; the host waits, and for the kernel if it `waits`.

        `codes`: each row's group, int32, never null (None: all are group 0).

        Raises:
            CancelledError: the thread's query was cancelled.
        """
        given = self._input_columns(kernels, frame)
        if given is None:
            return None
        session, rows = kernels.session, frame.rows
        plain = Variant(self._pattern(given.nullable))
        wanted = Variant(plain.nullable, self._has_own(plain, groups))
        found = self._find_kernel(session, wanted, given.nullable, groups, waits=waits)
        if found is None:
            return None
        made, layout = self._aggregate_kernel(found.variant)
        own, cells = found.variant.own, OwnCells(layout).count
        made_cells = GroupCells.cleared(session, layout, groups)
        shared = groups * len(layout.kinds) * _WORD
        in_block = not own and shared <= _BLOCK_BYTES
        status = session.read_back.take(1)
        launcher, where = session.launcher, codes_address(codes)
        launcher.start(
            found.kernel,
            *(given.packed, pack_constants(made), where, rows, groups, made_cells.packed()),
            *(() if own else (in_block,)),
            status.address,
            grid=launcher.grid(rows, _OWN_THREADS, 8) if own else launcher.grid(rows, most=8),
            block=_OWN_THREADS if own else 256,
            shared_bytes=groups * cells * _OWN_THREADS * _WORD if own else shared if in_block else 0,
            stream=session.driver_stream,
        )
        (lost,) = session.read_back.read(status)
        note_chunk(by_kernel=not lost, compiled_s=found.compiled_s)
        if lost:
            self._note_failure()
            return None
        return made_cells

    def layout(self, nullable: Sequence[bool]) -> CellLayout:
        """The words that are gathered where these inputs have nulls."""
        return self._aggregate_kernel(Variant(tuple(nullable)))[1]

    def _pattern(self, nullable: tuple[bool, ...]) -> tuple[bool, ...]:
        """The inputs whose nulls a kernel looks at that columns take of which these have some."""
        made = self._aggregating if self._program.aggregates else self._evaluating
        patterns = {one.nullable for one in list(made)}
        if nullable in patterns or len(patterns) < _MOST_PATTERNS:
            return nullable
        return (True,) * len(nullable)

    def _find_kernel(
        self,
        session: CudaSession,
        wanted: Variant,
        nullable: Sequence[bool],
        groups: int,
        *,
        waits: bool,
    ) -> _Kernel | None:
        """The variant's kernel, or, while that is compiled, another one's that can do the same."""
        programs, text = session.program_kernels, self._text(wanted)
        try:
            if waits:
                programs.compilation(text).wait(check_cancelled)
            found = programs.ready(text)
        except GpuError as error:
            self._note_problem(error)
            return None
        if found is not None:
            return _Kernel(found.kernel, wanted, found.compiled_s)
        for other in self._others(wanted, nullable, groups):
            found = programs.peek(self._text(other))
            if found is not None:
                return _Kernel(found.kernel, other, found.compiled_s)
        note_chunk(by_kernel=False, meanwhile=True)
        return None

    def _others(self, wanted: Variant, nullable: Sequence[bool], groups: int) -> Iterator[Variant]:
        """Variants that were made before: such as look at more nulls, or are for more groups."""
        made = self._aggregating if self._program.aggregates else self._evaluating
        able = [one for one in list(made) if one != wanted and one.looks_at(nullable)]
        for one in sorted(able, key=lambda one: (one.own != wanted.own, sum(one.nullable))):
            if not one.own or self._has_own(one, groups):
                yield one

    def _text(self, variant: Variant) -> str:
        if self._program.aggregates:
            return self._aggregate_kernel(variant)[0].text
        return self._evaluate_kernel(variant).text

    def _has_own(self, variant: Variant, groups: int) -> bool:
        """Whether there is room for cells of each thread."""
        _, layout = self._aggregate_kernel(Variant(variant.nullable))
        return groups * OwnCells(layout).count * _OWN_THREADS * _WORD <= _OWN_BYTES

    def _note_failure(self) -> None:
        with self._lock:
            self._failures += 1

    def _note_problem(self, error: GpuError) -> None:
        """There is no kernel: the operators compute the same, and a warning says why."""
        with self._lock:
            self._failures += _MOST_FAILURES if isinstance(error, KernelError) else 1
            self._problem = first_line(error)
        tell_problem(error)

    def _evaluate_kernel(self, variant: Variant) -> ProgramKernel:
        found = self._evaluating.get(variant)
        if found is None:
            found = self._evaluating[variant] = evaluate_text(self._program, self._types, variant.nullable)
        return found

    def _aggregate_kernel(self, variant: Variant) -> tuple[ProgramKernel, CellLayout]:
        found = self._aggregating.get(variant)
        if found is None:
            made = aggregate_text(self._program, variant.nullable, own=variant.own)
            found = self._aggregating[variant] = made
        return found

    def _input_columns(self, kernels: Kernels, frame: CudaFrame) -> _InputColumns | None:
        """What a kernel takes of each input; None where one cannot be computed."""
        if self.is_given_up:
            note_chunk(by_kernel=False, problem=self._problem)
            return None
        columns: list[InputColumn] = []
        for one in self._program.inputs:
            reference = one.expression
            column = (
                input_column(frame.held[reference.index], one.type)
                if isinstance(reference, ColumnRef)
                else answers_column(kernels, one, frame) or self._computed_column(kernels, one, frame)
            )
            if column is None:
                return None
            columns.append(column)
        return _InputColumns(tuple(columns), pack_inputs(columns), tuple(one.has_nulls for one in columns))

    def _computed_column(self, kernels: Kernels, one: Input, frame: CudaFrame) -> InputColumn | None:
        try:
            (column,) = evaluate_columns(kernels, [one.expression], frame)
        except ExecutionError:  # of a row, perhaps, that the statement does not ask about
            note_chunk(by_kernel=False)
            self._note_failure()
            return None
        return input_column(column, one.type)


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
