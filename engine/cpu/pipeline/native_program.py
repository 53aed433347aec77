"""A program and the native interpreter's copy of it, over record batches."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.engine.cpu.expressions.evaluation import evaluate_columns
from bamquery.engine.cpu.frames import decode_dictionary
from bamquery.engine.cpu.kernels import Column
from bamquery.engine.cpu.stored_frame import Batches, StoredFrame, needed_batch
from bamquery.engine.device import ConditionProgram
from bamquery.engine.pipeline.instructions import Instruction, Program
from bamquery.engine.pipeline.register_reuse import reuse_registers
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import ColumnRef, referenced_columns
from bamquery.storage.format.storable_types import value_bits, value_kind

if TYPE_CHECKING:
    from bamquery.storage.encodings.packed.selection import PackedSelection

_MOST_FAILURES: Final = 2
"""Chunks after which a program that fails is not tried again: it costs as much as the operators."""

_WORD_BYTES: Final = 8
"""What the interpreter's loads are aligned to at most."""

State = tuple[NDArray[np.int64], NDArray[np.int64], "NDArray[np.int64] | None"]
"""Of an aggregate, a group each: rows that counted, words of values, low and high words of sums."""

Groups = tuple[int, "list[tuple[NDArray[np.int64], NDArray[np.uint8]]]", list[State]]
"""How many there are, of each key a word and whether it is valid, and the states of aggregates."""


class NativeProgram:
    """Runs a program over chunks, several at once. What it cannot compute, it says no to: `None`."""

    def __init__(self, program: Program, types: Sequence[pa.DataType] = ()) -> None:
        """`types`: of the outputs, as columns."""
        reuse_registers(program)
        self._inputs = tuple(program.inputs)
        self._computed = [one.expression for one in self._inputs if not isinstance(one.expression, ColumnRef)]
        self._types = tuple(types)
        self._kinds = [value_kind(kind) for kind in types]
        self._native = _native.Program(
            np.array([_numbers(step) for step in program.steps], np.int64).reshape(-1, 7),
            [value_kind(given.type) for given in program.inputs],
            np.array(
                [
                    (
                        one.kind,
                        -1 if one.argument is None else one.argument,
                        -1 if one.filter is None else one.filter,
                    )
                    for one in program.aggregates
                ],
                np.int64,
            ).reshape(-1, 3),
            program.outputs,
        )
        self._lock = threading.Lock()
        self._failures = 0

    def without_failures(self) -> NativeProgram:
        """The same program, of which nobody knows yet that it fails."""
        made = copy.copy(self)
        made._lock, made._failures = threading.Lock(), 0
        return made

    @property
    def is_given_up(self) -> bool:
        """Whether it has failed so often that it is not asked any more."""
        return self._failures >= _MOST_FAILURES

    @property
    def has_failed(self) -> bool:
        """Whether some chunk had to be computed otherwise."""
        return self._failures > 0

    def evaluate(self, frame: pa.RecordBatch | StoredFrame) -> list[Column] | None:
        """The outputs for each row."""
        given = self._columns(frame)
        if given is None:
            return None
        rows = frame.num_rows
        values = [pa.allocate_buffer(-(-rows * value_bits(kind) // 8)) for kind in self._types]
        bitmaps = [pa.allocate_buffer(-(-rows // 8)) for _ in self._types]
        columns, batches = given
        nulls = self._native.evaluate(columns, rows, self._kinds, values, bitmaps, batches)
        if nulls is None:
            self._note_failure()
            return None
        return [
            pa.Array.from_buffers(kind, rows, [bitmap if missing else None, buffer], missing)
            for kind, buffer, bitmap, missing in zip(self._types, values, bitmaps, nulls, strict=True)
        ]

    def select(self, frame: pa.RecordBatch | StoredFrame) -> NDArray[np.int64] | None:
        """Positions of the rows for which the first output is true, ascending."""
        given = self._columns(frame)
        if given is None:
            return None
        columns, batches = given
        found: NDArray[np.int64] | None = self._native.select(columns, frame.num_rows, batches)
        if found is None:
            self._note_failure()
        return found

    def as_condition(self) -> ConditionProgram | None:
        """The program for who runs it over columns; None where it is given up, or needs more than columns."""
        columns = [one.expression.index for one in self._inputs if isinstance(one.expression, ColumnRef)]
        if self.is_given_up or len(columns) < len(self._inputs):
            return None
        types = tuple(one.type for one in self._inputs)
        return ConditionProgram(self._native, tuple(columns), types, self._note_failure)

    def aggregate(
        self, frame: pa.RecordBatch | StoredFrame, codes: NDArray[np.int32] | None, groups: int
    ) -> list[State] | None:
        """The states of its aggregates; `codes`: each row's group (None: all are group 0)."""
        given = self._columns(frame)
        if given is None:
            return None
        columns, batches = given
        found: list[State] | None = self._native.aggregate(columns, frame.num_rows, codes, groups, batches)
        if found is None:
            self._note_failure()
        return found

    def group(
        self, frame: pa.RecordBatch | StoredFrame, codes: NDArray[np.int32] | None
    ) -> Groups | bool | None:
        """The states of its aggregates by groups of its outputs; False where these are no small numbers.

        `codes`, if there are any, get each row's group.
        """
        given = self._columns(frame)
        if given is None:
            return None
        columns, batches = given
        found = self._native.group(columns, frame.num_rows, codes, batches)
        if found is None:
            self._note_failure()
        return found

    def _note_failure(self) -> None:
        with self._lock:
            self._failures += 1

    def _columns(self, frame: pa.RecordBatch | StoredFrame) -> tuple[list[tuple[Any, ...]], Any] | None:
        """What the interpreter takes of each input, and of batches; None where one cannot be computed."""
        if self.is_given_up:
            return None
        answers: Iterator[Column] = iter(())
        if self._computed:
            try:
                batch = needed_batch(frame, referenced_columns(*self._computed))
                answers = iter(evaluate_columns(self._computed, batch))
            except ExecutionError:  # of a row, perhaps, that the statement does not ask about
                self._note_failure()
                return None
        found: list[tuple[Any, ...]] = []
        batches: Batches | None = None
        for one in self._inputs:
            if isinstance(one.expression, ColumnRef):
                index = one.expression.index
                packed = frame.packed(index) if isinstance(frame, StoredFrame) else None
                if packed is not None and isinstance(frame, StoredFrame) and packed.type == one.type:
                    batches = frame.batches
                    found.append(_packed_column(packed))
                    continue
                column = frame.column(index)
            else:
                column = next(answers)
            if isinstance(column, pa.DictionaryArray):
                is_place = column.type.index_type == one.type != column.type.value_type
                column = column.indices if is_place else decode_dictionary(column)
            if column.type != one.type:
                return None
            validity, values = column.buffers()
            if values is None:
                return None
            found.append((_aligned(values), validity if column.null_count else None, column.offset))
        return found, None if batches is None else (batches.counts, batches.rows, batches.vectors)


def _aligned(values: pa.Buffer) -> pa.Buffer:
    """The buffer, or a copy where values begin anywhere, as Arrow allows them to in memory of others."""
    if values.address % _WORD_BYTES == 0:
        return values
    copy = pa.allocate_buffer(values.size)
    np.frombuffer(memoryview(copy), np.uint8)[:] = np.frombuffer(memoryview(values), np.uint8)
    return copy


def _packed_column(found: PackedSelection) -> tuple[Any, ...]:
    packed, encoding = found.packed, found.packed.encoding
    return (
        packed.payload,
        packed.lengths,
        packed.parameters,
        packed.place.rows,
        encoding.divisor,
        encoding.origin,
        packed.vectors,
    )


def _numbers(step: Instruction) -> tuple[int, ...]:
    operands = (*step.operands, 0, 0, 0)[:3]
    return (step.operation, step.out, *operands, step.immediate, step.extra)
