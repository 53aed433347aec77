"""What a chunk's reads took and were needed for, written into the profile once the GPU has ended them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.reads.vector_recording import record_read
from bamquery.engine.cuda.scan.resources.counter_board import CounterBoard, Slot
from bamquery.engine.operators.scan.accounting import plain_bytes_of
from bamquery.engine.profiling.queue_profile import QueueProfile
from bamquery.engine.profiling.scan_profile import ColumnProfile, ScanProfile
from bamquery.errors import GpuError
from bamquery.storage.format.storable_types import value_bits
from bamquery.storage.read_planner.planner import Strategy
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.statistics.parts import PART_ROWS

SECTOR_BYTES: Final = 32
"""The least that a GPU loads of memory: also across the bus (Min et al., EMOGI, VLDB 2020)."""

_DRIVE: Final = 0
"""A table's files are all served by one controller."""


@dataclass
class ColumnRead:
    """One chunk's read of one column.

    Attributes:
        name: the column's.
        strategy: how.
        path: by what way the bytes came.
        counters: what the host knows that it took.
        tallies: what kernels counted besides, of commands of queue pairs.
        copied: what kernels counted that read the page cache.
        sectors: the same of those that loaded single rows, in sectors.
        described: rows of each piece that the column had to look at, and distinct vectors behind them; None:
            the whole pieces, which are counted elsewhere.
        vectors: that were read; None: those of `described`.
        expected: for the first of `tallies`, the word with how many blocks they must come to.
        string_bytes: of the rows that the column had to look at.
        coded_bytes: the two words with these, of strings that are stored with a dictionary.
        in_parts: not whole vectors were read, but as many of their parts as kernels counted commands.
        touched: which of the chunk's vectors were read, once counters were copied back; None: all, or nobody
            asks.
    """

    name: str
    strategy: Strategy
    path: str
    counters: ReadCounters = field(default_factory=ReadCounters)
    tallies: list[Slot] = field(default_factory=list)
    copied: list[Slot] = field(default_factory=list)
    sectors: list[Slot] = field(default_factory=list)
    described: Slot | None = None
    vectors: int | None = None
    expected: list[Slot] = field(default_factory=list)
    string_bytes: int = 0
    coded_bytes: Slot | None = None
    in_parts: bool = False
    touched: Callable[[], NDArray[np.bool_]] | None = None


@dataclass
class KernelTime:
    """How long reading took, for the columns it served; call it once it has ended.

    Attributes:
        through_queues: it was a kernel that drove queue pairs.
    """

    seconds: Callable[[], float]
    columns: tuple[str, ...]
    through_queues: bool = True


def settle(
    profile: ScanProfile,
    queues: Callable[[], QueueProfile],
    chunk: ChunkMemory,
    reads: list[ColumnRead],
    kernels: list[KernelTime],
) -> None:
    """Add it up; the board was copied back after all kernels.

    Raises:
        GpuError: a kernel left something out.
    """
    rows = chunk.rows
    for read in reads:
        _add_tallies(read, chunk.board, chunk.state.block_bytes, queues, profile)
        with profile.lock:
            _add_read(profile.columns[read.name], read, chunk)
        if profile.vector_map is not None:
            touched = None if read.touched is None else read.touched()
            record_read(profile.vector_map, read.name, read.strategy, rows, touched)
    for kernel in kernels:
        seconds = kernel.seconds()
        if kernel.through_queues:
            with profile.lock:
                queues().kernel_seconds += seconds
        for name in kernel.columns:
            profile.columns[name].clock.add(seconds)


def note_failures(profile: ScanProfile, queues: Callable[[], QueueProfile], count: int) -> None:
    """So many commands failed, of which the query's error names the first."""
    with profile.lock:
        queues().drive(_DRIVE).errors += count


def _add_tallies(
    read: ColumnRead,
    board: CounterBoard,
    block_bytes: int,
    queues: Callable[[], QueueProfile],
    profile: ScanProfile,
) -> None:
    for number, slot in enumerate(read.tallies):
        found = board.read_tally(slot)
        size = found["blocks"] * block_bytes
        read.counters += ReadCounters(found["commands"], found["blocks"], size)
        if number < len(read.expected) and found["blocks"] != board.word(read.expected[number]):
            raise GpuError(
                f'column "{read.name}": {found["blocks"]} of {board.word(read.expected[number])} blocks were '
                "fetched, and no command failed: queue pairs have too few slots left"
            )
        with profile.lock:
            figures = queues()
            drive = figures.drive(_DRIVE)
            drive.commands += found["commands"]
            drive.bytes += size
            drive.in_flight_seconds += found["in_flight_ns"] / 1e9
            figures.waited_seconds += found["waited_ns"] / 1e9
            figures.warp_seconds += found["warp_ns"] / 1e9
    for slots, size in ((read.copied, block_bytes), (read.sectors, SECTOR_BYTES)):
        for slot in slots:
            found = board.read_tally(slot)
            read.counters += ReadCounters(found["commands"], found["blocks"], found["blocks"] * size)


def _needed_bytes(chunk: ChunkMemory, column: str, counts: NDArray[np.int64]) -> int:
    """See `operators.scan.accounting`: of so many rows of each piece."""
    resident = chunk.listed.resident
    kind = resident.fragments[0].schema.field(column).type
    return plain_bytes_of(counts, value_bits(kind), resident.nullable(column)[chunk.fragments])


def _add_read(figures: ColumnProfile, read: ColumnRead, chunk: ChunkMemory) -> None:
    rows, board = chunk.rows, chunk.board
    pieces = len(rows.pieces)
    figures.counters += read.counters
    if read.strategy is not Strategy.STREAM:
        figures.bytes_fetched += read.counters.bytes
    figures.paths[read.path] += 1
    if read.in_parts:
        parts = int((-(-rows.of_pieces // PART_ROWS)).sum())
        figures.parts_pruned += parts - read.counters.commands
    touched = pieces
    if read.described is not None:
        found = board.words(read.described, pieces + 1)
        touched = int((found[:pieces] != 0).sum())
        counts = found[:pieces].astype(np.int64)
        figures.rows_needed += int(counts.sum())
        figures.bytes_needed += _needed_bytes(chunk, read.name, counts) + read.string_bytes
        if read.coded_bytes is not None:
            low, high = board.words(read.coded_bytes, 2).tolist()
            figures.bytes_needed += low | high << 32
        figures.vectors_read += int(found[pieces]) if read.vectors is None else read.vectors
    else:
        figures.vectors_read += rows.count if read.vectors is None else read.vectors
    if read.strategy is Strategy.STREAM:
        figures.streamed += touched
    elif read.strategy is Strategy.FETCH_VECTORS:
        figures.fetched_vectors += touched
    else:
        figures.fetched_blocks += touched
