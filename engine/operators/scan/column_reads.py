"""Reads columns of one piece: plans how, reads, and writes down what it took."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Final, Generic

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.scan.accounting import bytes_of_pieces, whole_piece_bytes
from bamquery.engine.operators.scan.chunks import Piece
from bamquery.engine.operators.scan.known_costs import AskedRead, KnownCosts
from bamquery.engine.operators.scan.loaded_column import LoadedColumn
from bamquery.engine.operators.scan.open_fragments import FragmentReaders, OpenFragment
from bamquery.engine.profiling.scan_profile import ColumnProfile, ScanProfile
from bamquery.engine.settings import Settings
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.format.storable_types import is_string_like
from bamquery.storage.fragments.reader import vectors_of
from bamquery.storage.read_planner.column_demands import expected_demands, stored_demands
from bamquery.storage.read_planner.corrections import Corrections
from bamquery.storage.read_planner.hit_pyramid import HitPyramid
from bamquery.storage.read_planner.planner import Choice, Strategy, plan_reads
from bamquery.storage.readers.block_reader import ReadCounters

_STEPS: Final = 2
"""Densities of rows between one and its double, that are told apart before rows are known."""
_NEARLY_ALL: Final = 0.99
"""Share of a piece's rows from which on nothing can be saved by picking them."""
_LESSON: Final = 16
"""Times as many rows as those that a way of reading is tried with must be left."""
_DENSE: Final = 4
"""Part of the rows of their vectors from which on rows leave no block unread: none need be counted."""
_ALL: Final = -1
"""In place of a density: that of all rows."""
_NO_ROWS: Final = np.empty(0, np.int64)
_STRATEGIES: Final = tuple(Strategy)
_STREAM: Final = (Strategy.STREAM,)
_BY_THEMSELVES: Final = frozenset({_STREAM, (Strategy.FETCH_VECTORS,)})
"""Ways to read columns that are planned one by one, whatever they share."""
_WITHOUT_VECTORS: Final = (Strategy.STREAM, Strategy.FETCH_BLOCKS)
"""Where each vector has some of the rows: to fetch these vectors is to stream them."""
_WHOLE_VECTORS: Final = (Strategy.STREAM, Strategy.FETCH_VECTORS)


class ColumnReads(Generic[Frame]):
    """What all chunks of one scan read through; thread-safe."""

    def __init__(
        self,
        context: ExecutionContext[Frame],
        profile: ScanProfile,
        readers: FragmentReaders[Frame],
        check: Callable[[], None],
    ) -> None:
        """`check` is called before every read and raises where the scan should stop."""
        self._device = context.device
        self._profile = profile
        self._readers = readers
        self.check = check
        forced = forced_strategy(context.settings)
        self._strategies = _STRATEGIES if forced is None else (forced,)
        self._corrections: Corrections | None = None
        self._costs = KnownCosts()
        self._vector_seconds: dict[tuple[str, str], float] = {}
        """Of vectors that are read whole, by fragment and column."""

    @property
    def chooses(self) -> bool:
        """Whether ways to read are chosen by cost, and none is set."""
        return len(self._strategies) > 1

    def vector_seconds(self, piece: Piece, column: str) -> float:
        """What a vector of a column should take that is read whole, about."""
        key = piece.fragment.id, column
        seconds = self._vector_seconds.get(key)
        if seconds is None:
            seconds = self.expected_seconds(piece, column, None) / max(len(piece.vectors), 1)
            if piece.rows:
                self._vector_seconds[key] = seconds
        return seconds

    def expected_seconds(self, piece: Piece, column: str, rows: NDArray[np.int64] | None) -> float:
        """What reading the column for those rows (None: for all) should take, by their pyramid."""
        count = piece.rows if rows is None else len(rows)
        if not count:
            return 0.0
        # Other pieces of the fragment cost as much in proportion, where rows are as dense.
        vectors = len(piece.vectors)
        density = _ALL if rows is None else round(_STEPS * math.log2(count / vectors))
        opened = self._readers.get(piece.fragment)
        strategies = _STREAM if rows is None else self._strategies
        known = self._costs.of_fragment(piece.fragment, opened).seconds
        key = column, density, strategies
        seconds = known.get(key)
        if seconds is None:
            hits = HitPyramid.from_vectors(piece.vectors, count) if rows is None else HitPyramid.count(rows)
            stored = piece.fragment.column(column)
            demands = expected_demands(stored, hits, piece.vectors, opened.shape, strategies)
            (choice,) = plan_reads([demands], opened.model)
            seconds = known[key] = choice.cost_seconds / vectors
        return seconds * vectors

    def read(self, piece: Piece, column: str, rows: NDArray[np.int64] | None, *, selected: bool) -> Frame:
        """A frame of that column's values at one or more rows; None: all rows of the piece's vectors.

        Args:
            piece: rows of one fragment.
            column: its name.
            rows: row ids within the fragment.
            selected: these are the rows that the column has to look at; if not, that is the whole piece,
                which `count_whole_piece` notes.

        Raises:
            StorageError: the file cannot be read, or is not what was written.
        """
        (frame,) = self.read_each(piece, [column], rows, selected=selected)
        return frame

    def read_each(
        self, piece: Piece, columns: Sequence[str], rows: NDArray[np.int64] | None, *, selected: bool
    ) -> list[Frame]:
        """The same for one or more columns: a frame of each."""
        found = self.load_each(piece, columns, rows, selected=selected)
        return [one.as_frame(self._device) for one in found]

    def load_each(
        self, piece: Piece, columns: Sequence[str], rows: NDArray[np.int64] | None, *, selected: bool
    ) -> list[LoadedColumn[Frame]]:
        """The same, not yet as frames."""
        opened = self._readers.get(piece.fragment)
        choices = self._plan(opened, piece, columns, rows)
        stored, kind = opened.columns, piece.fragment.kind
        # Of vectors that are codes only the rows wanted are decoded; other columns are picked together below.
        as_codes = [False] * len(columns)
        if rows is not None:
            as_codes = [
                choice.strategy is Strategy.STREAM and kind(column).is_encoded
                for column, choice in zip(columns, choices, strict=True)
            ]
        # Where each vector has some, they are decoded as the vectors come.
        sparse = rows is not None and any(as_codes) and len(vectors_of(rows)) < len(piece.vectors)
        found = self._read_together(opened, piece, columns, rows, choices, sparse=sparse)
        for i, (column, choice, is_picked) in enumerate(zip(columns, choices, as_codes, strict=True)):
            if i in found:
                continue
            self.check()
            counters = ReadCounters()
            with self._profile.measure_read(column):
                start = time.perf_counter()
                if is_picked and sparse:
                    packed = stored.read_packed(column, piece.vectors, counters)
                    values = stored.decode(column, packed, rows, counters)
                elif rows is None or (choice.strategy is Strategy.STREAM and not is_picked):
                    values = stored.stream(column, piece.vectors, counters)
                elif is_picked or choice.strategy is Strategy.FETCH_VECTORS:
                    values = stored.fetch_vectors(column, rows, counters)
                else:
                    values = stored.fetch_blocks(column, rows, counters)
                seconds = time.perf_counter() - start
            self._corrections_of(opened).learn([choice], seconds)
            found[i] = LoadedColumn(values, counters, seconds)
        loaded = [found[i] for i in range(len(columns))]
        streamed = []
        if rows is not None:
            streamed = [
                one
                for one, choice, is_picked in zip(loaded, choices, as_codes, strict=True)
                if choice.strategy is Strategy.STREAM and not is_picked
            ]
        if rows is not None and streamed:
            whole = self._device.join_columns([one.as_frame(self._device) for one in streamed])
            taken = self._device.take(whole, piece.positions(rows))
            for place, one in enumerate(streamed):
                one.frame, one.values = self._device.select(taken, [place]), None
        self._count(piece, columns, rows, choices, loaded, selected=selected)
        return loaded

    def _count(
        self,
        piece: Piece,
        columns: Sequence[str],
        rows: NDArray[np.int64] | None,
        choices: Sequence[Choice],
        loaded: Sequence[LoadedColumn[Frame]],
        *,
        selected: bool,
    ) -> None:
        """Write down what reads took, and where rows are `selected`, what these needed."""
        looked_at = piece.rows if rows is None else len(rows)
        kind = piece.fragment.kind
        needed = [0] * len(columns)
        if selected:
            for i, (column, found) in enumerate(zip(columns, loaded, strict=True)):
                known = found.string_bytes
                if known is None:
                    known = self._device.string_bytes(found.as_frame(self._device))
                needed[i] = kind(column).sizes.plain_bytes(looked_at, known)
        if self._profile.vector_map is not None:
            for column, choice in zip(columns, choices, strict=True):
                whole = rows is None or choice.strategy is Strategy.STREAM
                read = piece.vectors if whole or rows is None else vectors_of(rows)
                self._profile.vector_map.read(column, piece.fragment.id, read, choice.strategy)
        streamed = held = len(piece.vectors)
        if rows is not None and any(choice.strategy is not Strategy.STREAM for choice in choices):
            held = len(vectors_of(rows))
        with self._profile.lock:
            for column, choice, found, size in zip(columns, choices, loaded, needed, strict=True):
                figures = self._profile.columns[column]
                count_strategy(figures, choice.strategy)
                figures.vectors_read += streamed if choice.strategy is Strategy.STREAM else held
                figures.counters += found.counters
                figures.planned.add(choice.cost_seconds, found.seconds)
                if choice.strategy is not Strategy.STREAM:
                    figures.bytes_fetched += found.counters.bytes
                if selected:
                    figures.rows_needed += looked_at
                    figures.bytes_needed += size

    def _read_together(
        self,
        opened: OpenFragment[Frame],
        piece: Piece,
        columns: Sequence[str],
        rows: NDArray[np.int64] | None,
        choices: Sequence[Choice],
        *,
        sparse: bool,
    ) -> dict[int, LoadedColumn[Frame]]:
        """Those of the columns that one native call reads whole, by their places."""
        ways = _WHOLE_VECTORS if not sparse else (Strategy.FETCH_VECTORS,)
        kind = piece.fragment.kind
        places = []
        if opened.columns.is_mapped:
            places = [
                i
                for i, (column, choice) in enumerate(zip(columns, choices, strict=True))
                if (rows is None or choice.strategy in ways) and kind(column).packed is not None
            ]
        if not places:
            return {}
        self.check()
        names = [columns[i] for i in places]
        with self._profile.measure_read(*names):
            start = time.perf_counter()
            vectors = piece.vectors if rows is None else vectors_of(rows)
            answers = opened.columns.read_together(names, vectors, rows)
            seconds = time.perf_counter() - start
        read = [choices[i] for i in places]
        for strategy in {choice.strategy: None for choice in read}:
            alike = [choice for choice in read if choice.strategy is strategy]
            self._corrections_of(opened).learn(alike, seconds * len(alike) / len(read))
        total = sum([choice.cost_seconds for choice in read]) or 1.0
        return {
            i: LoadedColumn(values, counters, seconds * choice.cost_seconds / total, strings)
            for i, choice, (values, counters, strings) in zip(places, read, answers, strict=True)
        }

    def plan_comparison(self, piece: Piece, column: str, rows: NDArray[np.int64] | None) -> Choice:
        """How to read a column that is compared as it is stored, for those rows; None: all of the piece's."""
        (choice,) = self._plan(self._readers.get(piece.fragment), piece, [column], rows, decodes=False)
        return choice

    def count_whole_piece(self, piece: Piece, column: str) -> None:
        """The column has to look at all rows [begin, end): nothing was filtered before it."""
        with self._profile.lock:
            figures = self._profile.columns[column]
            figures.rows_needed += piece.end - piece.begin
            figures.bytes_needed += whole_piece_bytes(piece, column)

    def count_whole_pieces(self, pieces: Sequence[Piece], column: str) -> None:
        """The same for several of one table."""
        if not pieces:
            return
        first = pieces[0].fragment
        if is_string_like(first.schema.field(first.column_index(column)).type):
            for piece in pieces:
                self.count_whole_piece(piece, column)
            return
        counts = np.array([piece.end - piece.begin for piece in pieces], np.int64)
        needed = bytes_of_pieces(pieces, column, counts)
        with self._profile.lock:
            figures = self._profile.columns[column]
            figures.rows_needed += int(counts.sum())
            figures.bytes_needed += needed

    def count_chunk(self, pieces: Sequence[Piece]) -> None:
        """The scan came to the chunk of those pieces."""
        rows = total = left = 0
        for piece in pieces:
            rows += piece.end - piece.begin
            total += piece.total_vectors
            left += len(piece.vectors)
        pruned = total - left
        with self._profile.lock:
            self._profile.rows_scanned += rows
            for figures in self._profile.columns.values():
                figures.vectors_total += total
                figures.vectors_pruned += pruned
        if self._profile.vector_map is not None:
            for piece in pieces:
                self._profile.vector_map.reach(
                    piece.fragment.id,
                    piece.first_vector,
                    piece.first_vector + piece.total_vectors,
                    piece.vectors,
                )

    def _plan(
        self,
        opened: OpenFragment[Frame],
        piece: Piece,
        columns: Sequence[str],
        rows: NDArray[np.int64] | None,
        *,
        decodes: bool = True,
    ) -> list[Choice]:
        """How to read columns together for those rows; None: all of the piece's vectors."""
        strategies = self._strategies
        if rows is None or (len(strategies) > 1 and len(rows) >= _NEARLY_ALL * piece.rows):
            strategies = _STREAM
        elif len(strategies) > 1:
            held = len(vectors_of(rows))
            if _DENSE * len(rows) >= held * VECTOR_ROWS:
                strategies = _WHOLE_VECTORS if held < len(piece.vectors) else _STREAM
            elif held == len(piece.vectors):
                strategies = _WITHOUT_VECTORS
        apart = not opened.model.overlaps and not opened.model.together  # what columns cost adds up
        if apart or strategies in _BY_THEMSELVES:
            asked = AskedRead(opened, piece, rows, decodes)
            corrections = self._corrections_of(opened)
            explores = len(strategies) > 1 and self._has_most_before_it(piece)
            return self._costs.pick_each(asked, columns, strategies, corrections, explores=explores)
        return self._count_plan(AskedRead(opened, piece, rows, decodes), columns, strategies)

    def _count_plan(
        self, asked: AskedRead, columns: Sequence[str], strategies: Sequence[Strategy]
    ) -> list[Choice]:
        """The same by what each way is counted to take."""
        opened, piece, rows = asked.opened, asked.piece, asked.rows
        corrections = self._corrections_of(opened)
        wanted = _NO_ROWS if rows is None else rows
        demands = [
            stored_demands(
                piece.fragment.column(column),
                wanted,
                piece.vectors,
                opened.shape,
                strategies,
                decodes=asked.decodes,
            )
            for column in columns
        ]
        explores = len(strategies) > 1 and self._has_most_before_it(piece)
        verified = opened.shape.verifies
        return plan_reads(demands, opened.model, corrections, verified_first=verified, explores=explores)

    def _corrections_of(self, opened: OpenFragment[Frame]) -> Corrections:
        if self._corrections is None:  # of two threads at the first chunk one loses what it learns
            self._corrections = Corrections(opened.model)
        return self._corrections

    def _has_most_before_it(self, piece: Piece) -> bool:
        """Whether what the piece teaches is worth more than reading it in the second best way costs."""
        with self._profile.lock:
            left = self._profile.rows_total - self._profile.rows_scanned
        return _LESSON * piece.rows <= left


def forced_strategy(settings: Settings) -> Strategy | None:
    """How columns are to be read once rows have been filtered; None: by cost."""
    if settings.verifies_all and settings.strategy != "stream":
        return Strategy.FETCH_VECTORS  # blocks have no checksums
    return None if settings.strategy == "auto" else Strategy(settings.strategy)


def count_strategy(figures: ColumnProfile, strategy: Strategy) -> None:
    """Note a read by one of the strategies; under the profile's lock."""
    if strategy is Strategy.STREAM:
        figures.streamed += 1
    elif strategy is Strategy.FETCH_VECTORS:
        figures.fetched_vectors += 1
    else:
        figures.fetched_blocks += 1
