"""One chunk from first filter to last output: the rows still alive, and the columns read for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.scan.chunks import Chunk, Piece
from bamquery.engine.operators.scan.column_reads import ColumnReads
from bamquery.engine.operators.scan.filter_order import AdaptiveFilterOrder, FilterStep

if TYPE_CHECKING:
    from bamquery.engine.operators.scan.row_numbers import RowNumbers


@dataclass(frozen=True, slots=True)
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

    def next_steps(self) -> list[FilterStep]:
        """The steps for the next chunk."""
        return [step for step in (*self.steps, *self.dynamic_filters()) if self.order.is_worth(step)]


class ChunkSelection(Generic[Frame]):
    """The state of one chunk on one thread."""

    def __init__(
        self,
        plan: SelectionPlan,
        context: ExecutionContext[Frame],
        reads: ColumnReads[Frame],
        chunk: Chunk,
    ) -> None:
        self._plan = plan
        self._device = context.device
        self._reads = reads
        self._pieces = chunk.pieces
        self._alive = chunk.rows
        """Rows that have passed so far."""
        self._rows: list[NDArray[np.int64] | None] = [None] * len(chunk.pieces)
        """Their row ids, a piece each, while columns are to be read; None: all of the piece's vectors."""
        self._held: dict[int, Frame] = {}
        """Columns in memory, by position in the schema, for the rows that are alive."""
        self._filtered = False

    def run(self) -> Frame | None:
        """The chunk's part of the answer; None where no row passes.

        Raises:
            CancelledError, ExecutionError, StorageError: as operators do.
        """
        self._reads.count_chunk(self._pieces)
        waiting = self._plan.next_steps()
        while waiting and (self._alive or not self._filtered):
            step = self._plan.order.choose_next(waiting, self._cost)
            self._load_columns(step.columns)
            # What the step's columns allow besides comes at no further cost.
            for ready in [s for s in waiting if s is step or (not s.can_fail and self._covers(s))]:
                waiting.remove(ready)
                self._apply(ready, set(self._plan.outputs).union(*(s.columns for s in waiting)))
        if not self._alive:
            return None
        self._load_columns(self._plan.outputs)
        if not self._plan.outputs:
            return self._device.from_arrow(rows_without_columns(self._alive))
        return self._device.join_columns([self._held[column] for column in self._plan.outputs])

    def _is_number(self, column: int) -> bool:
        return self._plan.numbers is not None and column == self._plan.numbers.column

    def _covers(self, step: FilterStep) -> bool:
        return all(column in self._held for column in step.columns)

    def _cost(self, step: FilterStep) -> float:
        """Seconds to read what the step still needs, for the rows that are alive."""
        return sum(
            self._reads.expected_seconds(piece, self._name(column), rows)
            for column in step.columns
            if column not in self._held and not self._is_number(column)
            for piece, rows in zip(self._pieces, self._rows, strict=True)
        )

    def _load_columns(self, columns: Sequence[int]) -> None:
        """Have those columns in memory."""
        missing = [column for column in dict.fromkeys(columns) if column not in self._held]
        numbers = self._plan.numbers
        if numbers is not None and numbers.column in missing:
            missing.remove(numbers.column)
            self._held[numbers.column] = self._device.from_arrow(numbers.batch(self._pieces, self._rows))
        if not missing:
            return
        names = [self._name(column) for column in missing]
        pieces: list[list[Frame]] = []
        for piece, rows in zip(self._pieces, self._rows, strict=True):
            if not self._filtered:
                for name in names:
                    self._reads.count_whole_piece(piece, name)
            if piece.rows if rows is None else len(rows):
                pieces.append(self._reads.read_each(piece, names, rows, selected=self._filtered))
        for column, frames in zip(missing, zip(*pieces, strict=True), strict=bool(pieces)):
            self._held[column] = frames[0] if len(frames) == 1 else self._device.concatenate(frames)

    def _apply(self, step: FilterStep, wanted: set[int]) -> None:
        """Keep the rows that pass; of the columns, those that are `wanted` from here on."""
        self._filtered = True
        if not self._alive:
            return
        frames = [self._held[column] for column in step.columns]
        passed = self._device.matching_positions(step.predicate, self._device.join_columns(frames))
        self._plan.order.learn(step, self._alive, len(passed))
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
            low, high = np.searchsorted(passed, (start, start + count))
            self._rows[number] = _ids(piece, rows, passed[low:high] - start)
            start += count

    def _name(self, column: int) -> str:
        return self._plan.schema.field(column).name


def rows_without_columns(rows: int) -> pa.RecordBatch:
    """A batch that only has a number of rows."""
    nothing = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    assert isinstance(nothing, pa.StructArray)
    return pa.RecordBatch.from_struct_array(nothing)


def _ids(piece: Piece, rows: NDArray[np.int64] | None, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    return piece.row_ids(positions) if rows is None else rows[positions]
