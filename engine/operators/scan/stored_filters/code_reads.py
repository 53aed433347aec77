"""Filters on columns that are stored as codes: vectors are read, and compared as they are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from bamquery import _native
from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.scan.accounting import plain_bytes
from bamquery.engine.operators.scan.chunks import Piece
from bamquery.engine.operators.scan.column_reads import ColumnReads, count_strategy
from bamquery.engine.operators.scan.filter_order import FilterStep
from bamquery.engine.operators.scan.fragment_columns import StoredValues
from bamquery.engine.operators.scan.open_fragments import FragmentReaders, OpenFragment
from bamquery.engine.operators.scan.stored_filters.code_conditions import CodeConditions
from bamquery.engine.profiling.scan_profile import ScanProfile
from bamquery.storage.encodings.packed.vectors import PackedVectors
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.reader import vectors_of
from bamquery.storage.read_planner.planner import Choice, Strategy
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.statistics.order_keys import KeyCondition


@dataclass(slots=True, eq=False)
class CodeComparison:
    """How a step is answered for one piece.

    Attributes:
        condition: codes that pass.
        choice: how the column is to be read; None where `packed` has it.
        packed: its vectors, if they are in memory.
    """

    condition: KeyCondition
    choice: Choice | None
    packed: PackedVectors | None


@dataclass(slots=True, eq=False)
class PassedRows:
    """What a comparison left of a piece.

    Attributes:
        compared: rows that were.
        count: those that pass.
        positions: theirs among those that were compared; None where nobody wants to know.
        packed: the vectors, where they are wanted.
    """

    compared: int
    count: int
    positions: NDArray[np.int64] | None
    packed: PackedVectors | None


class CodeReads(Generic[Frame]):
    """What all chunks of one scan compare codes by; thread-safe."""

    def __init__(
        self,
        context: ExecutionContext[Frame],
        profile: ScanProfile,
        readers: FragmentReaders[Frame],
        reads: ColumnReads[Frame],
    ) -> None:
        self._device = context.device
        self._zone_maps = context.settings.zone_maps
        self._profile = profile
        self._readers = readers
        self._reads = reads
        self._conditions = CodeConditions(context.device)

    def plan(
        self,
        step: FilterStep,
        names: Sequence[str],
        pieces: Sequence[Piece],
        rows: Sequence[NDArray[np.int64] | None],
        held: Sequence[PackedVectors | None] | None,
    ) -> list[CodeComparison | None] | None:
        """How to answer a step on codes, for each piece that has rows; None where values are to be read.

        `names` are those of the step's columns; `rows` and `held` go with `pieces`: rows alive (None: all),
        and vectors in memory.
        """
        found: list[CodeComparison | None] = []
        for i, (piece, alive) in enumerate(zip(pieces, rows, strict=True)):
            if not (piece.rows if alive is None else len(alive)):
                found.append(None)
                continue
            opened = self._readers.get(piece.fragment)
            packed = [name for name in names if opened.columns.is_packed(name)]
            if len(packed) < len(names) or len(names) > 1:
                if packed:
                    self._note(packed[0], "its condition compares several columns")
                return None
            condition = self.condition(step, names, piece, opened)
            if condition is None:
                return None
            vectors = None if held is None else held[i]
            choice = None if vectors is not None else self._reads.plan_comparison(piece, names[0], alive)
            if choice is not None and choice.strategy is Strategy.FETCH_BLOCKS:
                return None  # of so few rows that their values are read one by one
            found.append(CodeComparison(condition, choice, vectors))
        return found

    def condition(
        self, step: FilterStep, names: Sequence[str], piece: Piece, opened: OpenFragment[Frame]
    ) -> KeyCondition | None:
        """Which codes of a piece's column pass a step; None, and a note why, where codes do not tell.

        `names` are of packed columns, one or more.
        """
        if len(names) > 1:
            self._note(names[0], "its condition compares several columns")
            return None
        counters = ReadCounters()
        condition = self._conditions.find(step, names[0], piece.fragment, opened, counters)
        with self._profile.lock:
            self._profile.columns[names[0]].counters += counters
        if isinstance(condition, str):
            self._note(names[0], condition)
            return None
        return condition

    def compare(
        self,
        comparison: CodeComparison,
        step: FilterStep,
        column: str,
        piece: Piece,
        rows: NDArray[np.int64] | None,
        *,
        wanted: bool,
        selected: bool,
        located: bool,
    ) -> PassedRows:
        """Compare the piece's `rows`.

        `wanted`: the vectors are, later on. `selected` is as in `ColumnReads.read`. `located`: where rows are
        that pass, and not only how many. Raises as `ColumnReads.read` does.
        """
        self._reads.check()
        certain = self.certain_vectors(step, piece) if rows is None and not wanted else None
        packed, counters = comparison.packed, ReadCounters()
        with self._profile.measure_read(column):
            start = time.perf_counter()
            if packed is None:
                vectors = piece.vectors if certain is None else piece.vectors[~certain]
                if comparison.choice is not None and comparison.choice.strategy is Strategy.FETCH_VECTORS:
                    assert rows is not None
                    vectors = vectors_of(rows)
                found = self._readers.get(piece.fragment).columns.read_packed(column, vectors, counters)
                assert isinstance(found, PackedVectors), "its values have keys"
                packed = found
            mask, count = packed.compare(comparison.condition)
            if certain is not None and comparison.packed is None:
                whole = np.full((len(piece.vectors), VECTOR_ROWS // 8), 0xFF, np.uint8)
                whole[~certain] = mask.reshape(-1, VECTOR_ROWS // 8)
                mask = whole.reshape(-1)
                count += piece.rows - packed.row_count
            places = None
            if rows is not None:
                places = _native.set_among(mask, packed.positions(rows))
                count = len(places)
            elif located:
                places = _native.set_bits(mask, piece.rows)
            seconds = time.perf_counter() - start
        if comparison.choice is not None:
            self._count(comparison.choice, column, packed, counters, seconds)
            if self._profile.vector_map is not None:
                strategy = comparison.choice.strategy
                self._profile.vector_map.read(column, piece.fragment.id, packed.vectors, strategy)
            if selected:
                self._count_needed(column, piece, packed, rows)
        looked_at = piece.rows if rows is None else len(rows)
        return PassedRows(looked_at, count, places, packed if wanted else None)

    def decode(
        self, piece: Piece, column: str, packed: PackedVectors, rows: NDArray[np.int64] | None
    ) -> Frame:
        """A frame of that column's values at `rows`, which `packed` holds; None: all that it holds."""
        return self._device.from_columns([self.decode_values(piece, column, packed, rows)])

    def decode_values(
        self, piece: Piece, column: str, packed: PackedVectors, rows: NDArray[np.int64] | None
    ) -> StoredValues:
        """The same, not yet as a frame."""
        counters = ReadCounters()
        with self._profile.measure_read(column):
            columns = self._readers.get(piece.fragment).columns
            values = columns.decode(column, packed, rows, counters)
        if counters.commands:
            with self._profile.lock:
                self._profile.columns[column].counters += counters
        return values

    def certain_vectors(self, step: FilterStep, piece: Piece) -> NDArray[np.bool_] | None:
        """Which of the piece's vectors have nothing but rows that pass, by zone maps; None where none has."""
        ranges = [found for conjunct in step.conjuncts for found in conjunct.ranges]
        if not self._zone_maps or any(len(conjunct.ranges) != 1 for conjunct in step.conjuncts):
            return None
        certain = piece.fragment.zone_map.certain(ranges)[piece.vectors]
        return certain if certain.any() else None

    def _count(
        self, choice: Choice, column: str, packed: PackedVectors, counters: ReadCounters, seconds: float
    ) -> None:
        with self._profile.lock:
            figures = self._profile.columns[column]
            count_strategy(figures, choice.strategy)
            figures.vectors_read += len(packed.vectors)
            figures.vectors_compared += len(packed.vectors)
            figures.counters += counters
            figures.planned.add(choice.cost_seconds, seconds)
            if choice.strategy is not Strategy.STREAM:
                figures.bytes_fetched += counters.bytes

    def _count_needed(
        self, column: str, piece: Piece, packed: PackedVectors, rows: NDArray[np.int64] | None
    ) -> None:
        looked_at = piece.rows if rows is None else len(rows)
        counters = ReadCounters()
        columns = self._readers.get(piece.fragment).columns
        strings = columns.string_bytes(column, packed, rows, counters)
        with self._profile.lock:
            figures = self._profile.columns[column]
            figures.counters += counters
            figures.rows_needed += looked_at
            figures.bytes_needed += plain_bytes(piece.fragment, column, looked_at, strings)

    def _note(self, column: str, reason: str) -> None:
        """Say once in the profile what is decoded although it is only compared."""
        text = f'column "{column}" is decoded to be compared: {reason}'
        with self._profile.lock:
            if text not in self._profile.notes:
                self._profile.notes.append(text)


def joined_positions(passed: Sequence[PassedRows]) -> NDArray[np.int64]:
    """Positions of the rows that pass among all that were compared, piece after piece."""
    found = [np.empty(0, np.int64)]
    start = 0
    for rows in passed:
        assert rows.positions is not None
        found.append(rows.positions + start if start else rows.positions)
        start += rows.compared
    return found[1] if len(found) == 2 else np.concatenate(found)  # one piece: no copy
