"""Which rows fulfil a condition: one kernel for all of it, and one for the positions."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

import pyarrow as pa

from bamquery.data_types.type_groups import value_type
from bamquery.driver.gpu.device import GpuKernel
from bamquery.engine.cuda.expressions.dictionary_values import has_dictionary, only_column
from bamquery.engine.cuda.expressions.evaluation import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame, CudaPositions, column_from_buffers
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.launcher import WARPS
from bamquery.engine.cuda.pipeline.gpu_program import Variant, pack_constants
from bamquery.engine.cuda.pipeline.input_columns import (
    InputColumn,
    answers_column,
    input_column,
    pack_inputs,
)
from bamquery.engine.cuda.pipeline.member_sets import kept_sets
from bamquery.engine.cuda.pipeline.program_kernels import tell_problem
from bamquery.engine.cuda.pipeline.program_text import ProgramKernel
from bamquery.engine.cuda.pipeline.selection_text import selection_text
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.pipeline.instructions import Input, Program
from bamquery.engine.pipeline.lowering import ProgramBuilder
from bamquery.engine.pipeline.outputs import may_be_kept
from bamquery.engine.pipeline.registers import Shape, shape_of
from bamquery.engine.profiling.kernel_use import note_chunk
from bamquery.errors import GpuError, KernelError, MemoryLimitError
from bamquery.plan.expressions import Call, ColumnRef, Expression, Members
from bamquery.statement_context.cancellation import check_cancelled
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.format.storable_types import is_counted, is_string_like

_KEPT: Final = 256
"""Programs: each is a few kilobytes."""
_MOST_COLUMNS: Final = 64
"""That are loaded: kernels take 4 KiB of parameters."""
_MOST_SETS: Final = 16
_MOST_FAILURES: Final = 2
"""Frames after which a program that fails is not tried again."""
_LEAST_OPERATIONS: Final = 2
_MANY_ROWS: Final = 1 << 16
"""From which on a single comparison is worth a kernel of its own."""
_WORD: Final = 4
_LANES: Final = 32


class RowSelection:
    """A conjunction that kernels compute whole; thread-safe."""

    def __init__(self, program: Program, flags: Sequence[int], sets: Sequence[int], operations: int) -> None:
        """`flags`: registers of conditions; `sets`: inputs whose values are members of sets."""
        self._program = program
        self._flags = tuple(flags)
        self._sets = tuple(sets)
        self._operations = operations
        asked = [only_column(one.expression) for one in program.inputs]
        self._asked = tuple(
            column.index
            for column, one in zip(asked, program.inputs, strict=True)
            if column is not None and not isinstance(one.expression, ColumnRef)
        )
        """Columns whose dictionaries are asked."""
        self._texts: dict[Variant, ProgramKernel] = {}
        self._lock = threading.Lock()
        self._failures = 0

    def is_worth(self, rows: int) -> bool:
        """Whether it costs less than calls of libcudf would."""
        if self._failures >= _MOST_FAILURES:
            return False
        operations = self._operations + len(self._asked)
        return bool(self._sets) or operations >= _LEAST_OPERATIONS or rows >= _MANY_ROWS

    def positions(
        self, kernels: Kernels, frame: CudaFrame, members: Sequence[Members], *, waits: bool = False
    ) -> CudaPositions | None:
        """Of rows, one at least, that are wanted; None where it cannot say. The host waits.

        `waits`: also for the kernel, since the operators cannot do it.

        Raises:
            CancelledError: the thread's query was cancelled.
        """
        columns = self._input_columns(kernels, frame)
        sets = None if columns is None else kept_sets(kernels.session, members)
        if columns is None or sets is None:
            return None
        nullable = Variant(tuple(column.has_nulls for column in columns))
        found = self._find_kernel(kernels.session, nullable, waits=waits)
        if found is None:
            return None
        kernel, made, compiled_s = found
        session, rows = kernels.session, frame.rows
        launcher, stream = session.launcher, session.driver_stream
        vectors = -(-rows // VECTOR_ROWS)
        bits = session.allocate(_LANES * _WORD * vectors, "selected rows")
        counts = session.allocate(_WORD * vectors, "selected rows")
        offsets = session.allocate(_WORD * (vectors + 1), "selected rows")
        status = session.read_back.take(2)
        grid = launcher.grid(vectors, WARPS)
        launcher.start(
            kernel,
            *(pack_inputs(columns), pack_constants(made)),
            *((sets.packed,) if members else ()),
            *(rows, bits.ptr, counts.ptr, status.address),
            grid=grid,
            stream=stream,
        )
        launcher.prefix_sums(counts.ptr, vectors, offsets.ptr, status.address + _WORD, stream)
        lost, total = session.read_back.read(status)
        note_chunk(by_kernel=not lost, compiled_s=compiled_s)
        if lost:
            with self._lock:
                self._failures += 1
            return None
        places = session.allocate(_WORD * total, "selected rows")
        if total:
            numbering = launcher.kernel("scan_select", "scan_positions")
            launcher.start(numbering, bits.ptr, offsets.ptr, vectors, places.ptr, grid=grid, stream=stream)
        return CudaPositions(column_from_buffers(pa.int32(), total, places))

    def start_compiling(self, session: CudaSession, nullable: Sequence[bool | None]) -> None:
        """Begin with the kernel of frames whose columns may have nulls or not; None: not known."""
        known: list[bool] = []
        for one in self._program.inputs:
            column = only_column(one.expression)
            assert column is not None
            has = nullable[column.index]
            if has is None:
                return
            known.append(has)
        with suppress(GpuError):  # said where it is wanted
            session.program_kernels.compilation(self._text(Variant(tuple(known))).text)

    def _find_kernel(
        self, session: CudaSession, wanted: Variant, *, waits: bool
    ) -> tuple[GpuKernel, ProgramKernel, float] | None:
        """A kernel, its text, and how long somebody compiled it; while there is none, one of more nulls."""
        programs, made = session.program_kernels, self._text(wanted)
        try:
            if waits:
                programs.compilation(made.text).wait(check_cancelled)
            found = programs.ready(made.text)
        except GpuError as error:
            with self._lock:
                self._failures += _MOST_FAILURES if isinstance(error, KernelError) else 1
            tell_problem(error)
            return None
        if found is not None:
            return found.kernel, made, found.compiled_s
        for other, text in list(self._texts.items()):
            if other.looks_at(wanted.nullable) and (found := programs.peek(text.text)) is not None:
                return found.kernel, text, found.compiled_s
        note_chunk(by_kernel=False, meanwhile=True)
        return None

    def _text(self, variant: Variant) -> ProgramKernel:
        found = self._texts.get(variant)
        if found is None:
            found = selection_text(self._program, self._flags, self._sets, variant.nullable)
            self._texts[variant] = found
        return found

    def asks_dictionaries(self, has_dictionary: Callable[[int], bool]) -> bool:
        """Whether the columns have dictionaries whose values are to be asked."""
        return all(map(has_dictionary, self._asked))

    def _input_columns(self, kernels: Kernels, frame: CudaFrame) -> list[InputColumn] | None:
        """What the kernel loads; None where a column is not what it is said to be."""
        columns = []
        for one in self._program.inputs:
            reference = one.expression
            column = (
                input_column(frame.held[reference.index], one.type)
                if isinstance(reference, ColumnRef)
                else answers_column(kernels, one, frame)
            )
            if column is None:
                return None
            columns.append(column)
        return columns


def select_rows(kernels: Kernels, predicate: Expression, frame: CudaFrame) -> CudaPositions | None:
    """Positions of the rows for which a predicate is true, ascending; None where no kernel computes it.

    While its kernel is compiled the operators do. Of at least one row.

    Raises:
        ExecutionError: a value cannot be computed.
    """
    selection, sets = _find_selection(predicate)
    if selection is None or not selection.is_worth(frame.rows):
        return None
    if not selection.asks_dictionaries(functools.partial(has_dictionary, frame)):
        return None
    members = [one for _, one in sets]
    found = None
    with suppress(MemoryError, MemoryLimitError):  # sets of far values take more than operators do
        found = selection.positions(kernels, frame, members)
    if found is not None:
        return found
    try:
        (mask,) = evaluate_columns(kernels, [predicate], frame)
        return CudaPositions(kernels.keep([kernels.positions(frame.rows)], mask)[0])
    except (MemoryError, MemoryLimitError):
        # What operators make between their steps has no room; a kernel makes little.
        found = selection.positions(kernels, frame, members, waits=True)
        if found is None:
            raise
        return found


def start_compiling_selection(
    session: CudaSession, predicate: Expression, nullable: Sequence[bool | None]
) -> bool:
    """Begin with the kernel that `select_rows` will take; False: it will take none."""
    selection, _ = _find_selection(predicate)
    if selection is None or not selection.is_worth(1):
        return False
    selection.start_compiling(session, nullable)
    return True


def is_selectable(predicate: Expression, has_dictionary: Callable[[int], bool]) -> bool:
    """Whether a kernel computes a predicate whole, if its values are what they should be.

    `has_dictionary`: of a column by its place, whether its rows refer to a dictionary.
    """
    selection, _ = _find_selection(predicate)
    return selection is not None and selection.asks_dictionaries(has_dictionary)


_InSets: TypeAlias = tuple[tuple[ColumnRef, Members], ...]
"""Columns, and the sets in which their values are to be."""


def _find_selection(predicate: Expression) -> tuple[RowSelection | None, _InSets]:
    """Its kernels know a list of values only as a set: they are kept, and lists are not."""
    conditions, sets = _split(predicate)
    if not may_be_kept(conditions):
        return None, ()
    return _compile(conditions, tuple(column for column, _ in sets)), sets


def _split(predicate: Expression) -> tuple[tuple[Expression, ...], _InSets]:
    """Conditions that programs compute, perhaps, and sets in which columns' values are."""
    conditions, sets = [], []
    for one in _conjuncts(predicate):
        match one:
            case Call(function="in", arguments=(ColumnRef() as column, Members() as members)) if (
                members.type == column.type
            ):
                sets.append((column, members))
            case _:
                conditions.append(one)
    return tuple(conditions), tuple(sets)


def _conjuncts(predicate: Expression) -> Iterator[Expression]:
    if isinstance(predicate, Call) and predicate.function == "and":
        for argument in predicate.arguments:
            yield from _conjuncts(argument)
    else:
        yield predicate


@functools.lru_cache(maxsize=_KEPT)
def _compile(conditions: tuple[Expression, ...], sets: tuple[ColumnRef, ...]) -> RowSelection | None:
    builder = ProgramBuilder()
    flags = []
    for condition in conditions:
        flag = builder.add(condition)
        if flag is None or flag.shape is not Shape.FLAG:
            return None
        flags.append(flag.register)
    program, places = builder.program, []
    for column in sets:
        if not is_counted(column.type) or shape_of(column.type) is not Shape.WORD:
            return None
        places.append(len(program.inputs))
        program.inputs.append(Input(column, column.type))
    covered = all(isinstance(one.expression, ColumnRef) or _is_asked(one) for one in program.inputs)
    if not covered or len(program.inputs) > _MOST_COLUMNS or len(sets) > _MOST_SETS:
        return None
    return RowSelection(program, flags, places, builder.operations)


def _is_asked(one: Input) -> bool:
    """Whether an input may be asked of the values of a dictionary."""
    column = only_column(one.expression)
    return column is not None and is_string_like(value_type(column.type))
