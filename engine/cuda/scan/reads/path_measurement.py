"""Measures a GPU's ways to files in the page cache, with the kernels that scans read by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.columns.scan_column import Form, ScanColumn
from bamquery.engine.cuda.scan.path_rates import GpuProfile
from bamquery.engine.cuda.scan.reads.checksums import check_vectors
from bamquery.engine.cuda.scan.reads.fetch_blocks import FetchedColumn, Fetches, RowList
from bamquery.engine.cuda.scan.reads.fetch_vectors import fetch_vectors
from bamquery.engine.cuda.scan.reads.load_vectors import COPY_ENGINE, LoadedVectors, load_vectors
from bamquery.engine.cuda.scan.reads.mapped_rows import MappedRows
from bamquery.engine.cuda.scan.reads.packed_payloads import check_payloads, fetch_payloads, load_payloads
from bamquery.engine.cuda.scan.resources.counter_board import Slot
from bamquery.storage.format.layout import VECTOR_ROWS

LEAST_VECTORS: Final = 2048
"""Of a chunk to be measured with: less is over before queue pairs are busy."""
_TURNS: Final = 3
"""Of each, the fastest of which counts: the first ones bring the file into memory."""
_LEAST_WORK: Final = 1 / 100
"""Of a dense run's time, what its rows take at least."""
_DENSE_VECTORS: Final = 1024
"""All rows of so many are loaded one by one: a tenth of a millisecond, and 36 MiB in three turns."""
_LINE: Final = 128
"""Bytes of a GPU's cache line, whose sectors are asked for together."""
_PICKED: Final = 8
"""One vector of so many is picked, with which its neighbours are not."""


def measure_paths(chunk: ChunkMemory, columns: list[ScanColumn], assumed: GpuProfile) -> GpuProfile | None:
    """What this chunk's reads take; None where it is too small, or no column of it will do.

    Takes about ten milliseconds, and 10 bytes of the GPU's memory for each of the column's. What cannot be
    told from it stays as assumed: how many copies and picks of next to nothing fit into a second, and how
    much faster than a kernel the copy engine is, where the chunk's vectors are scattered.
    """
    column = next((column for column in columns if _will_do(chunk, column)), None)
    if column is None or chunk.rows.count < LEAST_VECTORS:
        return None
    reads = _PackedReads(chunk, column) if chunk.is_packed(column.name) else _PlainReads(chunk, column)
    places = reads.block_places()
    rows = places[0]
    if not len(rows):
        return None
    streamed, checked = [], []
    for _ in range(_TURNS):
        loaded = reads.stream()
        if loaded.seconds is None:
            return None
        chunk.state.wait_for(chunk.state.stream)
        streamed.append(loaded.seconds())
        checked.append(_seconds(chunk, _clock_of_call(chunk, reads.check)))
    vectors = np.arange(0, chunk.rows.count, _PICKED)
    picked = _fastest_run(chunk, partial(reads.pick, vectors * VECTOR_ROWS))
    fetched = _fastest_run(chunk, partial(reads.fetch, *places))
    alone = _fastest_run(chunk, partial(reads.fetch, rows[:1], places[1][:1]))
    loaded_rows = _fastest_run(chunk, partial(reads.load, rows))
    start = _fastest_run(chunk, partial(reads.load, rows[:1]))
    dense = reads.dense_rows()
    loaded_dense = _fastest_run(chunk, partial(reads.load, dense))
    sparse_rate = len(rows) / max(loaded_rows - start, loaded_rows / 2)
    size = int(reads.sizes.sum())
    # What zone maps have left lies here and there: a kernel brings it, over the bus that bounds copies, too.
    faster = 1.0 if loaded.path == COPY_ENGINE else assumed.stream / assumed.vectors
    return GpuProfile(
        stream=faster * size / min(streamed),
        copies=assumed.copies,
        vectors=int(reads.sizes[vectors].sum()) / picked,
        picks=assumed.picks,
        blocks=reads.count_blocks(places) / max(fetched - alone, fetched / 2),
        latency=alone,
        rows=sparse_rate,
        values=value_rate(len(dense), reads.count_lines(dense), sparse_rate, loaded_dense, start),
        start=start,
        checksum=size / min(checked),
        source="measured",
    )


def value_rate(rows: int, lines: int, line_rate: float, seconds: float, start: float) -> float:
    """Of a dense run: its rows beside the first of each line, in what is left of its time without these.

    Neighbouring lines come faster than such that lie apart, so nothing may be left: then lines alone are
    dear enough, and rows are to cost next to nothing.
    """
    work = max(seconds - start, seconds / 2)
    return max(rows - lines, 1) / max(work - lines / line_rate, _LEAST_WORK * work)


def _will_do(chunk: ChunkMemory, column: ScanColumn) -> bool:
    return chunk.stored_column(column).form is not Form.STRINGS and chunk.is_mapped(column.name, "values")


_Clock: TypeAlias = "Callable[[], float]"
"""Seconds that something took on the GPU, once it has ended."""


def _fastest_run(chunk: ChunkMemory, start: Callable[[], _Clock]) -> float:
    return min(_seconds(chunk, start()) for _ in range(_TURNS))


def _seconds(chunk: ChunkMemory, clock: _Clock) -> float:
    chunk.state.wait_for(chunk.state.stream)
    return clock()


def _clock_of_call(chunk: ChunkMemory, start: Callable[[], object]) -> _Clock:
    """Of what has no clock of its own; the host must have nothing else to do until it is started."""
    clock = chunk.clock(chunk.state.stream)
    start()
    clock.end()
    return clock.seconds


_Places = tuple[NDArray[np.int64], NDArray[np.uint64]]
"""Positions of rows, and the bytes of their files from which on something of theirs is read."""


@dataclass
class _Reads:
    """A column of the chunk, read in every way.

    Attributes:
        sizes: bytes of each of the chunk's vectors.
    """

    chunk: ChunkMemory
    column: ScanColumn

    def __post_init__(self) -> None:
        rows = self.chunk.rows
        begins, sizes, full = [], [], []
        extents = self.chunk.extents(self.column.name, "values")
        for number, (piece, extent) in enumerate(zip(rows.pieces, extents, strict=True)):
            assert extent is not None
            first, length = self._vectors(number, piece.vectors)
            begins.append(extent.offset + first)
            sizes.append(length)
            full.append((piece.vectors + 1) * VECTOR_ROWS <= piece.fragment.rows)
        self._begins = np.concatenate(begins)
        self.sizes: NDArray[np.int64] = np.concatenate(sizes)
        self._full: NDArray[np.bool_] = np.concatenate(full)

    @property
    def name(self) -> str:
        return self.column.name

    def _vectors(self, number: int, vectors: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        raise NotImplementedError

    def stream(self) -> LoadedVectors:
        raise NotImplementedError

    def check(self) -> object:
        raise NotImplementedError

    def pick(self, rows: NDArray[np.int64]) -> _Clock:
        raise NotImplementedError

    def load(self, rows: NDArray[np.int64]) -> _Clock:
        raise NotImplementedError

    def block_places(self) -> _Places:
        """A place in every block of full vectors, and a row of each vector for every one that it has."""
        block = self.chunk.state.block_bytes
        counts = np.maximum(self.sizes // block, (self.sizes > 0).astype(np.int64))
        counts[~self._full] = 0  # they lack rows, and behind the last one there may be no page
        owner = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        step = VECTOR_ROWS // np.maximum(counts[owner], 1)
        return owner * VECTOR_ROWS + number * step, (self._begins[owner] + number * block).astype(np.uint64)

    def dense_rows(self) -> NDArray[np.int64]:
        """All rows of the first full vectors."""
        vectors = np.flatnonzero(self._full & (self.sizes > 0))[:_DENSE_VECTORS]
        return (vectors[:, None] * VECTOR_ROWS + np.arange(VECTOR_ROWS)).ravel()

    def count_lines(self, rows: NDArray[np.int64]) -> int:
        """That hold something of full vectors, all rows of which are given."""
        return int((-(-self.sizes[rows[::VECTOR_ROWS] // VECTOR_ROWS] // _LINE)).sum())

    def count_blocks(self, places: _Places) -> int:
        """Distinct ones."""
        blocks = places[1] // np.uint64(self.chunk.state.block_bytes)
        pieces = np.searchsorted(self.chunk.rows.firsts, places[0] // VECTOR_ROWS, "right")
        return 1 + int(np.count_nonzero((np.diff(blocks) != 0) | (np.diff(pieces) != 0)))

    def fetch(self, positions: NDArray[np.int64], places: NDArray[np.uint64]) -> _Clock:
        """Through queue pairs, 8 bytes at each place."""
        chunk, count = self.chunk, len(positions)
        selection = self._select(positions)
        fetches = Fetches(chunk, selection)
        target = chunk.allocate(8 * count, "measuring reads")
        offsets = chunk.allocate(8 * count, "measuring reads")
        chunk.uploads.fill(offsets, places, chunk.state.stream)
        listed = RowList(selection.positions.ptr, count, selection.count, offsets.ptr)
        fetches.add_words(FetchedColumn(target), self.name, listed, None, target, 0)
        clock = fetches.start()
        assert clock is not None
        return clock

    def _select(self, positions: NDArray[np.int64]) -> Selection:
        chunk = self.chunk
        found = chunk.allocate(4 * len(positions), "measuring reads")
        chunk.uploads.fill(found, positions.astype(np.uint32), chunk.state.stream)
        word = chunk.uploads.put(np.array([len(positions)], np.uint32), chunk.state.stream)
        count = Slot(word, -1, -1)
        return Selection(found, len(positions), count, count)


class _PlainReads(_Reads):
    """Of a plain column."""

    @property
    def _bits(self) -> int:
        return self.chunk.buffers(self.name)[0].bits

    def _vectors(self, number: int, vectors: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        size = VECTOR_ROWS * self._bits // 8
        rows = self.chunk.rows.pieces[number].fragment.rows
        left = np.minimum(rows - vectors * VECTOR_ROWS, VECTOR_ROWS)
        return vectors * size, left * self._bits // 8

    def stream(self) -> LoadedVectors:
        self._loaded = load_vectors(self.chunk, self.name, "values", self._bits, self.chunk.state.stream)
        return self._loaded

    def check(self) -> object:
        memory, stream = self._loaded.memory, self.chunk.state.stream
        return check_vectors(self.chunk, self.name, "values", self._bits, memory, stream)

    def pick(self, rows: NDArray[np.int64]) -> _Clock:
        return fetch_vectors(self.chunk, self.name, "values", self._bits, self._select(rows), None).seconds

    def load(self, rows: NDArray[np.int64]) -> _Clock:
        mapped = MappedRows(self.chunk, self._select(rows))
        mapped.add(self.name, self._bits, None)
        clock = mapped.start()
        assert clock is not None
        return clock


class _PackedReads(_Reads):
    """Of a packed column."""

    def _vectors(self, number: int, vectors: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        payloads = self.chunk.payloads(self.name)[number]
        return payloads.begins[vectors], payloads.sizes[vectors]

    def stream(self) -> LoadedVectors:
        loaded, self._payloads = load_payloads(self.chunk, self.name, self.chunk.state.stream, None)
        return loaded

    def check(self) -> object:
        return check_payloads(self.chunk, self.name, self._payloads, self.chunk.state.stream)

    def pick(self, rows: NDArray[np.int64]) -> _Clock:
        picked, _ = fetch_payloads(self.chunk, self.name, self._select(rows))
        return picked.seconds

    def load(self, rows: NDArray[np.int64]) -> _Clock:
        kind = self.chunk.stored_column(self.column).stored_kind
        mapped = MappedRows(self.chunk, self._select(rows))
        mapped.add_packed(self.name, kind)
        clock = mapped.start()
        assert clock is not None
        return clock
