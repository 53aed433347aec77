"""Several of a chunk's filters at once, vector by vector, where columns are packed and files are mapped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.device import Frame
from bamquery.engine.operators.scan.accounting import plain_bytes
from bamquery.engine.operators.scan.chunks import Piece
from bamquery.engine.operators.scan.column_reads import ColumnReads, count_strategy
from bamquery.engine.operators.scan.filter_order import FilterStep
from bamquery.engine.operators.scan.open_fragments import FragmentReaders, OpenFragment
from bamquery.engine.operators.scan.stored_filters.code_reads import CodeReads
from bamquery.engine.operators.scan.stored_filters.step_plans import StepPart, StepPlan, StepPlans
from bamquery.engine.profiling.scan_profile import ScanProfile
from bamquery.storage.encodings.packed.row_selection import CodeStep, ProgramStep, SelectedRows, SetStep, Step
from bamquery.storage.encodings.packed.vectors import PackedVectors
from bamquery.storage.format.storable_types import is_string_like
from bamquery.storage.fragments.reader import vectors_of
from bamquery.storage.read_planner.planner import Strategy
from bamquery.storage.readers.block_reader import ReadCounters

_FEW: Final = 12
"""Rows of a vector, on average, below which values are better read one by one than vectors whole."""


@dataclass(slots=True, eq=False)
class AliveRows:
    """Rows of a chunk.

    Attributes:
        pieces: the chunk's.
        rows: ids of those alive, a piece each; None: all of the piece's vectors.
        filtered: not all rows of the pieces are looked at any more.
    """

    pieces: Sequence[Piece]
    rows: Sequence[NDArray[np.int64] | None]
    filtered: bool

    def count(self, number: int) -> int:
        """Of a piece."""
        ids = self.rows[number]
        return self.pieces[number].rows if ids is None else len(ids)

    def vectors(self, number: int) -> NDArray[np.int64]:
        """Those of a piece that have some."""
        ids = self.rows[number]
        return self.pieces[number].vectors if ids is None else vectors_of(ids)

    @property
    def density(self) -> float:
        """Rows of each vector that has some."""
        rows = vectors = 0
        for piece, ids in zip(self.pieces, self.rows, strict=True):
            rows += piece.rows if ids is None else len(ids)
            vectors += len(piece.vectors if ids is None else vectors_of(ids))
        return rows / max(vectors, 1)


@dataclass(slots=True, eq=False)
class Selection:
    """What steps left of a chunk.

    Attributes:
        alive: rows that pass.
        rows: ids as `AliveRows` has them; as before where nobody wants to know.
        packed: vectors of columns that are wanted later on, a piece each.
        counts: rows that each step looked at, and that passed.
    """

    alive: int
    rows: list[NDArray[np.int64] | None]
    packed: dict[str, list[PackedVectors | None]]
    counts: list[tuple[FilterStep, int, int]]


class VectorSelection(Generic[Frame]):
    """What all chunks of one scan select rows by; thread-safe."""

    def __init__(
        self,
        plans: StepPlans[Frame],
        profile: ScanProfile,
        readers: FragmentReaders[Frame],
        reads: ColumnReads[Frame],
        codes: CodeReads[Frame],
    ) -> None:
        self._plans = plans
        self._profile = profile
        self._readers = readers
        self._reads = reads
        self._codes = codes

    def plan(
        self,
        waiting: Sequence[FilterStep],
        alive: AliveRows,
        in_order: Callable[[Sequence[FilterStep]], Sequence[FilterStep]],
        selectivity: Callable[[FilterStep], float],
        name: Callable[[int], str | None],
    ) -> list[StepPlan]:
        """Steps that are best taken next, one after the other; none where other ways are better.

        `name` is a column's, None where it is no column to be read.
        """
        if not self._reads.chooses:
            return []
        density = alive.density
        filtered = alive.filtered
        found: list[StepPlan] = []
        if not density:
            return []
        for step in in_order(waiting):
            if filtered and density < _FEW:
                break
            plan = self._plans.plan(step, alive.pieces, alive.rows, name)
            if plan is None:
                break
            found.append(plan)
            density *= selectivity(step)
            filtered = True
        return found

    def run(
        self, plans: Sequence[StepPlan], alive: AliveRows, wanted: set[str], *, located: bool
    ) -> Selection | None:
        """Take steps that were planned; None where a program could not compute some row: plan anew.

        `wanted` are columns that are, later on. `located`: where rows are that pass, and not only how many.

        Raises:
            CancelledError, ExecutionError, StorageError: as operators do.
        """
        parts = [(plan, part) for plan in plans for part in plan.parts]
        names = list(dict.fromkeys(name for _, part in parts for name in part.columns))
        answers: list[tuple[_PieceSteps, SelectedRows, float] | None] = []
        for i in range(len(alive.pieces)):
            if not alive.count(i):
                answers.append(None)
                continue
            steps = self._steps(parts, names, i, alive, wanted)
            self._reads.check()
            with self._profile.measure_read(*names):
                start = time.perf_counter()
                selected = steps.select(alive.vectors(i), alive.rows[i], located=located)
                seconds = time.perf_counter() - start
            if isinstance(selected, int):
                self._plans.give_up(*parts[selected])
                return None
            answers.append((steps, selected, seconds))
        return self._finish(plans, alive, names, answers)

    def _steps(
        self,
        parts: Sequence[tuple[StepPlan, StepPart]],
        names: Sequence[str],
        number: int,
        alive: AliveRows,
        wanted: set[str],
    ) -> _PieceSteps:
        """Steps as the native call takes them for one piece."""
        piece = alive.pieces[number]
        opened = self._readers.get(piece.fragment)
        counters = [ReadCounters() for _ in names]
        uses = [name for _, part in parts for name in part.columns]
        first = {name: next(i for i, (_, part) in enumerate(parts) if name in part.columns) for name in names}
        steps: list[Step] = []
        for i, (plan, part) in enumerate(parts):
            places = tuple(names.index(name) for name in part.columns)
            if part.program is not None:
                steps.append(ProgramStep(part.program.native, places))
            elif part.numbers is not None:
                steps.append(SetStep(places[0], part.numbers))
            else:
                (name,) = part.columns
                strings = certain = None
                if not alive.filtered and i == 0:
                    if name not in wanted and uses.count(name) == 1:
                        certain = self._codes.certain_vectors(plan.step, piece)
                elif first[name] == i:
                    strings = self._bytes_of_strings(piece, name, opened, counters[places[0]])
                steps.append(CodeStep(places[0], part.conditions[number], certain, strings))
        return _PieceSteps(opened, names, [name in wanted for name in names], steps, first, counters)

    def _finish(
        self,
        plans: Sequence[StepPlan],
        alive: AliveRows,
        names: Sequence[str],
        answers: Sequence[tuple[_PieceSteps, SelectedRows, float] | None],
    ) -> Selection:
        whole = () if alive.filtered else plans[0].parts[0].columns
        rows = list(alive.rows)
        kept = next((steps.kept for steps, *_ in filter(None, answers)), [False] * len(names))
        packed: dict[str, list[PackedVectors | None]] = {
            name: [None] * len(rows) for name, keep in zip(names, kept, strict=True) if keep
        }
        counts = [(0, 0)] * len(plans)
        left = 0
        for i, (piece, answer) in enumerate(zip(alive.pieces, answers, strict=True)):
            for name in dict.fromkeys(whole):
                self._reads.count_whole_piece(piece, name)
            if answer is None:
                continue
            steps, selected, seconds = answer
            left += selected.count
            if selected.rows is not None:
                rows[i] = selected.rows
            for name, vectors in packed.items():
                vectors[i] = selected.reads[names.index(name)].packed
            begin = 0
            for p, plan in enumerate(plans):
                end = begin + len(plan.parts)
                looked_at, passed = selected.steps[begin][0], selected.steps[end - 1][1]
                counts[p] = counts[p][0] + looked_at, counts[p][1] + passed
                begin = end
            self._count(piece, steps, selected, seconds, whole)
        taken = [(plan.step, *count) for plan, count in zip(plans, counts, strict=True)]
        return Selection(left, rows, packed, taken)

    def _count(
        self,
        piece: Piece,
        steps: _PieceSteps,
        selected: SelectedRows,
        seconds: float,
        whole: Sequence[str],
    ) -> None:
        """Write down what a piece took; of columns that are `whole` it is known what they needed."""
        expected = [
            self._reads.vector_seconds(piece, name) * len(read.vectors)
            for name, read in zip(steps.names, selected.reads, strict=True)
        ]
        share = seconds / (sum(expected) or 1.0)
        for place, name in enumerate(steps.names):
            read, first = selected.reads[place], steps.first[name]
            looked_at, _, strings = selected.steps[first]
            if not looked_at:
                continue
            every = name in whole or len(read.vectors) == len(piece.vectors)
            strategy = Strategy.STREAM if every else Strategy.FETCH_VECTORS
            if self._profile.vector_map is not None:
                self._profile.vector_map.read(name, piece.fragment.id, read.vectors, strategy)
            needed = plain_bytes(piece.fragment, name, looked_at, strings)
            with self._profile.lock:
                figures = self._profile.columns[name]
                count_strategy(figures, strategy)
                figures.vectors_read += len(read.vectors)
                if isinstance(steps.steps[first], CodeStep):
                    figures.vectors_compared += len(read.vectors)
                figures.counters += read.counters
                figures.counters += steps.counters[place]
                figures.planned.add(expected[place], share * expected[place])
                if not every:
                    figures.bytes_fetched += read.counters.bytes
                if name not in whole:
                    figures.rows_needed += looked_at
                    figures.bytes_needed += needed

    def _bytes_of_strings(
        self, piece: Piece, name: str, opened: OpenFragment[Frame], counters: ReadCounters
    ) -> NDArray[np.int64] | None:
        """Of what a column's codes stand for, where its rows are strings."""
        fragment = piece.fragment
        if not is_string_like(fragment.schema.field(fragment.column_index(name)).type):
            return None
        known = opened.columns.string_lengths(name, counters)
        return known if len(known) else None


@dataclass(slots=True, eq=False)
class _PieceSteps:
    """Steps for one piece.

    Attributes:
        opened: its file.
        names: of the columns.
        kept: of which of them vectors are wanted later on.
        steps: a part each.
        first: the first part that reads a column.
        counters: of each column, what was read besides.
    """

    opened: OpenFragment[Any]
    names: Sequence[str]
    kept: Sequence[bool]
    steps: Sequence[Step]
    first: dict[str, int]
    counters: Sequence[ReadCounters]

    def select(
        self, vectors: NDArray[np.int64], rows: NDArray[np.int64] | None, *, located: bool
    ) -> SelectedRows | int:
        """See `row_selection.select_rows`."""
        columns = self.opened.columns.packed_columns(self.names)
        assert columns is not None, "they were when steps were planned"
        return self.opened.columns.select_rows(columns, self.kept, self.steps, vectors, rows, located=located)
