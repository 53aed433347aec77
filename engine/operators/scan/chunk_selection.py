"""One chunk from first filter to last output: the rows still alive, and the columns read for them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.device import Frame, Positions
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.scan.chunks import Chunk, Piece
from bamquery.engine.operators.scan.column_reads import ColumnReads
from bamquery.engine.operators.scan.filter_order import AdaptiveFilterOrder, FilterStep
from bamquery.engine.operators.scan.fragment_columns import StoredValues
from bamquery.engine.operators.scan.open_fragments import FragmentReaders
from bamquery.engine.operators.scan.stored_filters.code_reads import CodeReads, PassedRows, joined_positions
from bamquery.engine.operators.scan.stored_filters.step_plans import StepPlans
from bamquery.engine.operators.scan.stored_filters.vector_selection import (
    AliveRows,
    Selection,
    VectorSelection,
)
from bamquery.engine.profiling.scan_profile import ScanProfile
from bamquery.storage.encodings.packed.vectors import PackedVectors

if TYPE_CHECKING:
    from bamquery.engine.operators.scan.row_numbers import RowNumbers


@dataclass(frozen=True)
class SelectionPlan:
    """What a scan does with every chunk: columns to give out, and steps to pass before."""

    outputs: tuple[int, ...]
    steps: tuple[FilterStep, ...]
    schema: pa.Schema
    order: AdaptiveFilterOrder
    dynamic_filters: Callable[[], Sequence[FilterStep]] = tuple
    """Steps that change while the scan runs, as they are now."""
    numbers: RowNumbers | None = None
    """What computes the rows' numbers, where they are a column."""

    @functools.cached_property
    def names(self) -> Sequence[str]:
        """Of the source's columns."""
        return self.schema.names

    def next_steps(self) -> list[FilterStep]:
        """The steps for the next chunk."""
        return [step for step in (*self.steps, *self.dynamic_filters()) if self.order.is_worth(step)]

    def passing_share(self) -> float:
        """Share of rows that are expected to pass all steps, by what was seen so far."""
        return math.prod(self.order.selectivity(step) for step in self.steps if self.order.is_worth(step))


@dataclass(frozen=True, slots=True)
class ChunkReads(Generic[Frame]):
    """What all chunks of a scan are read through."""

    reads: ColumnReads[Frame]
    codes: CodeReads[Frame]
    vectors: VectorSelection[Frame]

    @staticmethod
    def of_scan(
        context: ExecutionContext[Frame],
        profile: ScanProfile,
        readers: FragmentReaders[Frame],
        reads: ColumnReads[Frame],
    ) -> ChunkReads[Frame]:
        """Those of one scan."""
        codes = CodeReads(context, profile, readers, reads)
        plans = StepPlans(context.device, readers, codes)
        return ChunkReads(reads, codes, VectorSelection(plans, profile, readers, reads, codes))


class ChunkSelection(Generic[Frame]):
    """The state of one chunk on one thread."""

    def __init__(
        self,
        plan: SelectionPlan,
        context: ExecutionContext[Frame],
        work: ChunkReads[Frame],
        chunk: Chunk,
    ) -> None:
        self._plan = plan
        self._names = plan.names
        self._device = context.device
        self._reads = work.reads
        self._codes = work.codes
        self._vectors = work.vectors
        self._pieces = chunk.pieces
        self._alive = chunk.rows
        """Rows that have passed so far."""
        self._rows: list[NDArray[np.int64] | None] = [None] * len(chunk.pieces)
        """Their row ids, a piece each, while columns are to be read; None: all of the piece's vectors."""
        self._held: dict[int, Frame] = {}
        """Columns in memory, by position in the schema, for the rows that are alive."""
        self._packed: dict[int, list[PackedVectors | None]] = {}
        """Columns whose vectors are in memory, a piece each, but not decoded."""
        self._filtered = False

    def run(self) -> Frame | None:
        """The chunk's part of the answer; None where no row passes.

        Raises:
            CancelledError, ExecutionError, StorageError: as operators do.
        """
        self._reads.count_chunk(self._pieces)
        if self._plan.numbers is not None:
            self._select_numbers(self._plan.numbers)
        waiting = [step for step in self._plan.next_steps() if not self._passes_all(step)]
        while waiting and (self._alive or not self._filtered):
            if self._select_by_vectors(waiting):
                continue
            step = self._plan.order.choose_next(waiting, self._cost)
            if self._compare_codes(step, self._wanted_columns([s for s in waiting if s is not step])):
                waiting.remove(step)
                continue
            self._load_columns(step.columns)
            # What the step's columns allow besides comes at no further cost.
            for ready in [s for s in waiting if s is step or (not s.can_fail and self._covers(s))]:
                waiting.remove(ready)
                self._apply(ready, self._wanted_columns(waiting))
        if not self._alive:
            return None
        outputs = self._plan.outputs
        if not outputs:
            return self._device.from_arrow(rows_without_columns(self._alive))
        numbers = self._plan.numbers
        if len(self._pieces) == 1 and not self._held and (numbers is None or numbers.column not in outputs):
            return self._read_outputs(self._pieces[0], self._rows[0])
        self._load_columns(outputs)
        return self._device.join_columns([self._held[column] for column in outputs])

    def _read_outputs(self, piece: Piece, rows: NDArray[np.int64] | None) -> Frame:
        """The columns given out, of the chunk's one piece, none of which is a frame yet: as one frame."""
        values: dict[int, StoredValues] = {}
        columns = dict.fromkeys(self._plan.outputs)  # each once
        read = [column for column in columns if column not in self._packed]
        for column in columns:
            (packed,) = self._packed.pop(column, (None,))
            if packed is not None:
                values[column] = self._codes.decode_values(piece, self._names[column], packed, rows)
        if read:
            names = [self._names[column] for column in read]
            if not self._filtered:
                for name in names:
                    self._reads.count_whole_piece(piece, name)
            loaded = self._reads.load_each(piece, names, rows, selected=self._filtered)
            for column, one in zip(read, loaded, strict=True):
                if one.values is not None:
                    values[column] = one.values
                else:
                    self._held[column] = one.as_frame(self._device)
        if not self._held:
            return self._device.from_columns([values[column] for column in self._plan.outputs])
        for column, found in values.items():
            self._held[column] = self._device.from_columns([found])
        return self._device.join_columns([self._held[column] for column in self._plan.outputs])

    def _passes_all(self, step: FilterStep) -> bool:
        """Whether a step only asks for rows that are not null, of a column that has no nulls."""
        ranges = step.conjuncts[0].ranges if len(step.conjuncts) == 1 else ()
        if len(ranges) != 1 or ranges[0].operator != "is_not_null" or self._is_number(step.columns[0]):
            return False
        name = self._names[step.columns[0]]
        fragments = (piece.fragment for piece in self._pieces)
        return not any(one.layout.columns[one.column_index(name)].has_nulls for one in fragments)

    def _select_numbers(self, numbers: RowNumbers) -> None:
        """Keep the rows that conditions on their numbers choose."""
        rows = [numbers.rows_of(piece) for piece in self._pieces]
        if any(found is not None for found in rows):
            counts = zip(self._pieces, rows, strict=True)
            self._alive = sum(piece.rows if found is None else len(found) for piece, found in counts)
            self._rows, self._filtered = rows, True

    def _is_number(self, column: int) -> bool:
        return self._plan.numbers is not None and column == self._plan.numbers.column

    def _wanted_columns(self, waiting: Sequence[FilterStep]) -> set[int]:
        return set(self._plan.outputs).union(*(step.columns for step in waiting))

    def _covers(self, step: FilterStep) -> bool:
        return all(column in self._held for column in step.columns)

    def _cost(self, step: FilterStep) -> float:
        """Seconds to read what the step still needs, for the rows that are alive."""
        if not self._filtered:
            return sum(
                self._reads.vector_seconds(piece, self._names[column]) * len(piece.vectors)
                for column in step.columns
                if column not in self._held and column not in self._packed and not self._is_number(column)
                for piece in self._pieces
            )
        return sum(
            self._reads.expected_seconds(piece, self._names[column], rows)
            for column in step.columns
            if column not in self._held and column not in self._packed and not self._is_number(column)
            for piece, rows in zip(self._pieces, self._rows, strict=True)
        )

    def _load_columns(self, columns: Sequence[int]) -> None:
        """Have those columns in memory."""
        missing = [column for column in dict.fromkeys(columns) if column not in self._held]
        numbers = self._plan.numbers
        if numbers is not None and numbers.column in missing:
            missing.remove(numbers.column)
            self._held[numbers.column] = self._device.from_arrow(numbers.batch(self._pieces, self._rows))
        for column in [column for column in missing if column in self._packed]:
            missing.remove(column)
            self._held[column] = self._decode(column)
        if not missing:
            return
        names = [self._names[column] for column in missing]
        pieces: list[list[Frame]] = []
        for piece, rows in zip(self._pieces, self._rows, strict=True):
            if not self._filtered:
                for name in names:
                    self._reads.count_whole_piece(piece, name)
            if piece.rows if rows is None else len(rows):
                pieces.append(self._reads.read_each(piece, names, rows, selected=self._filtered))
        for column, frames in zip(missing, zip(*pieces, strict=True), strict=bool(pieces)):
            self._held[column] = frames[0] if len(frames) == 1 else self._device.concatenate(frames)

    def _decode(self, column: int) -> Frame:
        """A column that was compared as codes, of the rows that are alive: at least one."""
        vectors = self._packed.pop(column)
        name = self._names[column]
        frames = [
            self._codes.decode(piece, name, packed, rows)
            for piece, packed, rows in zip(self._pieces, vectors, self._rows, strict=True)
            if packed is not None and (piece.rows if rows is None else len(rows))
        ]
        return frames[0] if len(frames) == 1 else self._device.concatenate(frames)

    def _select_by_vectors(self, waiting: list[FilterStep]) -> bool:
        """Take the next steps together where that is best, and out of those that wait; whether it was so."""
        order = self._plan.order
        alive = AliveRows(self._pieces, self._rows, self._filtered)
        plans = self._vectors.plan(
            waiting,
            alive,
            lambda steps: order.in_order(steps, self._cost),
            order.selectivity,
            self._unread_name,
        )
        if not plans:
            return False
        left = [step for step in waiting if all(step is not plan.step for plan in plans)]
        columns = self._wanted_columns(left)
        wanted = {self._names[column]: column for column in columns}
        # Where nothing else will be looked at, how many rows pass is all that counts.
        found = self._vectors.run(plans, alive, set(wanted), located=bool(columns))
        if found is None:
            return True  # there is another plan now
        waiting[:] = left
        for step, before, after in found.counts:
            order.learn(step, before, after)
        self._packed = {column: vectors for column, vectors in self._packed.items() if column in columns}
        self._packed |= {wanted[name]: vectors for name, vectors in found.packed.items()}
        self._keep_held(columns, found)
        self._alive, self._rows, self._filtered = found.alive, found.rows, True
        return True

    def _keep_held(self, columns: set[int], found: Selection) -> None:
        """Of columns in memory keep those that are wanted, and of these the rows that were left."""
        self._held = {column: frame for column, frame in self._held.items() if column in columns}
        if not self._held or found.alive == self._alive:
            return
        positions, start = [], 0
        for piece, before, after in zip(self._pieces, self._rows, found.rows, strict=True):
            count = piece.rows if before is None else len(before)
            if after is None:
                positions.append(np.arange(start, start + count))
            elif before is None:
                positions.append(piece.positions(after) + start)
            else:
                positions.append(np.searchsorted(before, after) + start)
            start += count
        passed = np.concatenate(positions)
        self._held = {column: self._device.take(frame, passed) for column, frame in self._held.items()}

    def _unread_name(self, column: int) -> str | None:
        """The name of a column that is to be read; None where it is in memory, or computed."""
        if column in self._held or column in self._packed or self._is_number(column):
            return None
        return self._names[column]

    def _compare_codes(self, step: FilterStep, wanted: set[int]) -> bool:
        """Keep the rows that pass by what the step's column is stored as, if that tells; whether it does."""
        columns = [c for c in step.columns if c not in self._held]
        if len(columns) < len(step.columns) or any(map(self._is_number, columns)):
            return False
        column, names = columns[0], [self._names[column] for column in columns]
        held = self._packed.get(column)
        plan = self._codes.plan(step, names, self._pieces, self._rows, held)
        if plan is None:
            return False
        # Where nothing else will be looked at, how many rows pass is all that counts.
        located = bool(wanted)
        passed: list[PassedRows] = []
        vectors: list[PackedVectors | None] = []
        for piece, rows, comparison in zip(self._pieces, self._rows, plan, strict=True):
            if not self._filtered:
                self._reads.count_whole_piece(piece, names[0])
            if comparison is None:
                vectors.append(None)
                continue
            found = self._codes.compare(
                comparison,
                step,
                names[0],
                piece,
                rows,
                wanted=column in wanted,
                selected=self._filtered,
                located=located,
            )
            passed.append(found)
            vectors.append(found.packed)
        if column in wanted:
            self._packed[column] = vectors
        self._filtered = True
        if located:
            self._keep_passed(step, joined_positions(passed), wanted)
        else:
            count = sum(found.count for found in passed)
            self._plan.order.learn(step, self._alive, count)
            self._alive = count
        return True

    def _apply(self, step: FilterStep, wanted: set[int]) -> None:
        """Keep the rows that pass; of the columns, those that are `wanted` from here on."""
        self._filtered = True
        if not self._alive:
            return
        frames = [self._held[column] for column in step.columns]
        passed = self._device.matching_positions(step.predicate, self._device.join_columns(frames))
        self._keep_passed(step, passed, wanted)

    def _keep_passed(self, step: FilterStep, passed: Positions, wanted: set[int]) -> None:
        """Of the rows that are alive keep those at positions, and of the columns those that are wanted."""
        self._plan.order.learn(step, self._alive, len(passed))
        self._packed = {column: vectors for column, vectors in self._packed.items() if column in wanted}
        self._held = {column: frame for column, frame in self._held.items() if column in wanted}
        if len(passed) == self._alive:
            return
        self._alive = len(passed)
        self._held = {column: self._device.take(frame, passed) for column, frame in self._held.items()}
        if wanted - self._held.keys():
            self._keep(self._device.read_positions(passed))

    def _keep(self, passed: NDArray[np.int64]) -> None:
        """Row ids of the rows at those positions among the ones alive before."""
        start = 0
        for number, (piece, rows) in enumerate(zip(self._pieces, self._rows, strict=True)):
            count = piece.rows if rows is None else len(rows)
            low, high = passed.searchsorted((start, start + count))
            self._rows[number] = _ids(piece, rows, passed[low:high] - start)
            start += count


def rows_without_columns(rows: int) -> pa.RecordBatch:
    """A batch that only has a number of rows."""
    nothing = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    assert isinstance(nothing, pa.StructArray)
    return pa.RecordBatch.from_struct_array(nothing)


def _ids(piece: Piece, rows: NDArray[np.int64] | None, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    return piece.row_ids(positions) if rows is None else rows[positions]
