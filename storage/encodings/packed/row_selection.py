"""Conditions on packed columns of a mapped file, answered together, vector by vector, by one native call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bamquery import _native
from bamquery.errors import CorruptionError
from bamquery.storage.encodings.packed.column import PackedColumn
from bamquery.storage.encodings.packed.column_sets import WRONG_VALUES
from bamquery.storage.encodings.packed.vectors import PackedVectors, native_condition
from bamquery.storage.format.storable_types import value_kind
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.statistics.order_keys import KeyCondition


@dataclass(slots=True, eq=False)
class CodeStep:
    """A condition on one column's codes.

    Attributes:
        column: its place among the columns.
        certain: of each vector that is asked about, whether all its rows are known to pass; None: of none.
        string_bytes: of what codes stand for, if those of the rows looked at are to be summed up.
    """

    column: int
    condition: KeyCondition
    certain: NDArray[np.bool_] | None = None
    string_bytes: NDArray[np.int64] | None = None


@dataclass(slots=True, eq=False)
class ProgramStep:
    """A condition that is the first output of a program.

    Attributes:
        program: of the native interpreter.
        columns: places of its inputs' columns.
    """

    program: Any
    columns: tuple[int, ...]


@dataclass(slots=True, eq=False)
class SetStep:
    """A condition that one column's numbers are in a native set."""

    column: int
    numbers: Any


Step: TypeAlias = CodeStep | SetStep | ProgramStep


@dataclass(slots=True, eq=False)
class VectorsRead:
    """What was read of a column: `packed` are its vectors where they are wanted."""

    vectors: NDArray[np.int64]
    packed: PackedVectors | None
    counters: ReadCounters


@dataclass(slots=True, eq=False)
class SelectedRows:
    """What steps left.

    Attributes:
        count: rows that pass all of them.
        rows: their ids; None: all that were asked about, or nobody wants to know.
        steps: of each step the rows that it looked at, those that passed, and bytes of strings of the former.
        reads: of each column.
    """

    count: int
    rows: NDArray[np.int64] | None
    steps: Sequence[tuple[int, int, int]]
    reads: Sequence[VectorsRead]


def select_rows(  # noqa: PLR0917 - rows and what is asked about them
    reader: MappedReader,
    columns: Sequence[PackedColumn],
    kept: Sequence[bool],
    steps: Sequence[Step],
    vectors: NDArray[np.int64],
    rows: NDArray[np.int64] | None,
    *,
    verify: bool,
    located: bool,
) -> SelectedRows | int:
    """Which rows of one or more `vectors` pass all steps; the number of a program that cannot tell.

    Args:
        reader: of the columns' file.
        columns: that steps are about.
        kept: of which of them vectors are wanted later on.
        steps: in their order; none looks at rows, or reads vectors, of which the one before left nothing.
        vectors: ascending numbers.
        rows: ascending ids of those to ask about, all in the vectors; None: all of them.
        verify: compare vectors with their checksums.
        located: whether ids are wanted.

    Raises:
        CorruptionError: bytes are not those that were written.
        StorageError: the file cannot be read.
    """
    asked = [_native_step(step, columns) for step in steps]
    native = [column.native for column in columns]

    def select(file: _native.BlockFile) -> Any:
        return _native.select_rows(file, native, list(kept), asked, vectors, rows, verify, located)

    try:
        answer = reader.read_together(select, [column.span(vectors) for column in columns])
    except ValueError as error:
        names = ", ".join(f'"{column.place.name}"' for column in columns)
        raise CorruptionError(f"column {names}: {error}", columns[0].place.path) from error
    passed, count, counts, reads, failed = answer
    if failed >= 0:
        return int(failed)
    found = []
    for column, (numbers, lengths, payload, commands, blocks, mismatch) in zip(columns, reads, strict=True):
        if mismatch >= 0:
            raise column.place.corrupt(mismatch, WRONG_VALUES)
        packed = None if payload is None else column.hold(numbers, payload, lengths)
        found.append(VectorsRead(numbers, packed, reader.counters(commands, blocks)))
    return SelectedRows(count, passed, counts, found)


def _native_step(step: Step, columns: Sequence[PackedColumn]) -> tuple[Any, ...]:
    if isinstance(step, ProgramStep):
        return step.program, list(step.columns)
    if isinstance(step, SetStep):
        return step.numbers, [step.column]
    kind = value_kind(columns[step.column].place.type)
    terms, bounds = native_condition(step.condition, kind)
    certain = None if step.certain is None else step.certain.view(np.uint8)
    return None, [step.column], terms, bounds, step.condition.nulls, certain, step.string_bytes
