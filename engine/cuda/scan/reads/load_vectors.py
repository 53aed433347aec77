"""Whole vectors of one buffer into the GPU's memory: by the copy engine, by a kernel, or by queue pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import rmm
from numpy.typing import NDArray

from bamquery.driver.gpu.driver_api import Cuda
from bamquery.engine.cuda.scan.chunk.chunk_memory import WARPS, ChunkMemory
from bamquery.engine.cuda.scan.kernel_tables.requests import count_requests, cut_requests, stream_requests
from bamquery.engine.cuda.scan.resources.counter_board import Slot
from bamquery.engine.cuda.scan.scan_state import DEADLINE_NS
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.readers.block_reader import ReadCounters

COPY_ENGINE: Final = "copy engine"
ZERO_COPY: Final = "zero-copy"
QUEUE_PAIRS: Final = "queue pairs"

LARGE_RUN: Final = 256 << 10
"""Runs of at least so many bytes, on average, are the copy engine's: each is started by the host."""
_COPY_BYTES: Final = 32 << 20
"""Of one copy: other streams' copies come between."""
COPY_BLOCKS: Final = 16
"""Of the kernels that copy: with 4 KiB in flight for each warp already more than PCIe takes. More would only
make all else wait longer that crosses it, launches too: 0.25 ms with 64 blocks, 0.07 with 16, measured."""
_KERNEL_RUN: Final = 64 << 10
"""A warp's share at most of a run that a kernel copies."""


@dataclass
class LoadedVectors:
    """Whole vectors of one buffer.

    Attributes:
        memory: vector v begins at 1,024 v rows.
        path: how they came.
        counters: what reading took, as far as the host knows.
        tally: what kernels count; None if they do not.
        seconds: how long it took, once it has ended.
        parts: the parts that are there, see `ChunkMemory.parts`; None: all.
    """

    memory: rmm.DeviceBuffer
    path: str
    counters: ReadCounters
    tally: Slot | None = None
    seconds: Callable[[], float] | None = None
    parts: int | None = None


def load_vectors(  # noqa: PLR0917 - one read of one buffer
    chunk: ChunkMemory,
    column: str,
    buffer: str,
    bits: int,
    stream: Any,
    wanted: NDArray[np.bool_] | None = None,
    *,
    in_parts: bool = False,
) -> LoadedVectors:
    """Start to load the chunk's vectors of a column's `values` or `validity`; `wanted`: only those.

    `in_parts`: of all vectors, what zone maps left of them is enough, where reading that is less.

    Raises:
        StorageError: a file is not there as it was written.
        MemoryLimitError: there is not enough memory.
    """
    rows, state = chunk.rows, chunk.state
    size = rows.count * VECTOR_ROWS * bits // 8
    memory = chunk.allocate(size, f'streaming column "{column}"')
    parts = chunk.parts if in_parts and chunk.listed.resident.has_parts(column) else None
    scattered = parts is not None or (size < LARGE_RUN * rows.runs and rows.runs > len(rows.pieces))
    if wanted is not None or not scattered or not chunk.is_mapped(column, buffer):
        requests = stream_requests(rows, chunk.extents(column, buffer), bits, wanted)
        return load_requests(chunk, column, buffer, requests, memory, stream)
    if stream is not state.stream:
        state.session.follow(stream, state.stream)
    clock = chunk.clock(stream)
    loaded = _load_by_kernel(chunk, column, buffer, bits, memory, parts, stream)
    clock.end()
    loaded.seconds = clock.seconds
    return loaded


def load_requests(  # noqa: PLR0917 - one read of one buffer
    chunk: ChunkMemory,
    column: str,
    buffer: str,
    requests: NDArray[Any],
    memory: rmm.DeviceBuffer,
    stream: Any,
) -> LoadedVectors:
    """Start to load what `requests` (of `stream_requests` or their like) say of one buffer into `memory`.

    Raises:
        StorageError: a file is not there as it was written.
    """
    state = chunk.state
    if stream is not state.stream:
        state.session.follow(stream, state.stream)
    runs, blocks = count_requests(requests, state.block_bytes)
    counters = ReadCounters(runs, blocks, blocks * state.block_bytes)
    if not len(requests):
        return LoadedVectors(memory, COPY_ENGINE, counters)
    if not chunk.is_mapped(column, buffer):
        return _load_by_queue_pairs(chunk, requests, memory, stream)
    clock = chunk.clock(stream)
    total = int(requests["bytes"].sum(dtype=np.int64))
    if total >= LARGE_RUN * len(requests) or len(requests) <= len(chunk.rows.pieces):
        hosts = chunk.mapped_places(column, buffer, by_host=True)[requests["nsid"]]
        start_copies(state.session.gpu.cuda, requests, hosts, memory.ptr, stream)
        clock.end()
        return LoadedVectors(memory, COPY_ENGINE, counters, seconds=clock.seconds)
    pieces = (
        requests.copy() if requests["bytes"].max() <= _KERNEL_RUN else cut_requests(requests, _KERNEL_RUN)
    )
    pieces["source"] += chunk.mapped_places(column, buffer)[pieces["nsid"]]
    pieces["target"] += np.uint64(memory.ptr)
    copy_mapped(chunk, chunk.uploads.put(pieces, stream), len(pieces), None, stream)
    clock.end()
    return LoadedVectors(memory, ZERO_COPY, counters, seconds=clock.seconds)


def start_copies(
    cuda: Cuda, requests: NDArray[Any], hosts: NDArray[np.uint64], memory: int, stream: Any
) -> None:
    """Have the copy engine bring requests to where `memory` begins.

    `hosts`: where this process has byte 0 of each one's file.
    """
    sources = (hosts + requests["source"]).tolist()
    targets = (requests["target"] + np.uint64(memory)).tolist()
    for source, target, count in zip(sources, targets, requests["bytes"].tolist(), strict=True):
        for at in range(0, count, _COPY_BYTES):
            size = min(count - at, _COPY_BYTES)
            cuda("copy to the GPU", "cuMemcpyHtoDAsync", target + at, source + at, size, stream)


def copy_mapped(chunk: ChunkMemory, requests: int, count: int, counted: Slot | None, stream: Any) -> None:
    """Copy requests whose sources are addresses: `count`, or as many as the word `counted` says."""
    launcher = chunk.state.launcher
    launcher.start(
        launcher.kernel("scan_load", "scan_load_mapped"),
        *(requests, count, None if counted is None else counted.address, chunk.board.take(4).address),
        grid=max(1, min(-(-count // WARPS), COPY_BLOCKS)),
        stream=stream,
    )


def copy_files(  # noqa: PLR0917 - one read of one buffer
    chunk: ChunkMemory, requests: int, count: int, counted: Slot | None, tally: Slot, stream: Any
) -> Callable[[], float]:
    """Copy requests whose sources are places in files, through queue pairs; the result is its time."""
    state = chunk.state
    rings = state.load_rings
    board = chunk.board
    arguments = (
        *(requests, count, None if counted is None else counted.address, board.take(4).address),
        *(rings.shape.lba_bytes, state.block_bytes, rings.shape.lanes, rings.shape.nap_ns, DEADLINE_NS),
        *(tally.address, board.control.address, board.load_errors.address),
    )
    kernel = state.launcher.kernel("scan_load", "scan_load_rings")
    with state.session.lock:
        launch = rings.start(kernel, arguments, commands=count, stream=stream)
    return state.note_launch(launch)


def _load_by_kernel(  # noqa: PLR0917 - one read of one buffer
    chunk: ChunkMemory,
    column: str,
    buffer: str,
    bits: int,
    memory: rmm.DeviceBuffer,
    parts: int | None,
    stream: Any,
) -> LoadedVectors:
    """All of the chunk's vectors, or their `parts`, which the GPU finds in the page cache itself."""
    count = chunk.rows.count
    nulls = chunk.nulls(column) if buffer == "validity" else None
    tally = chunk.board.tally()
    places = chunk.places(column, buffer, None, stream)
    launcher = chunk.state.launcher
    arguments = (bits, memory.ptr, chunk.state.block_bytes, chunk.board.take(4).address, tally.address)
    grid = max(1, min(-(-count // WARPS), COPY_BLOCKS))
    if parts is not None:
        kernel = launcher.kernel("scan_load", "scan_load_parts")
        what = (chunk.vectors, parts, count, places, chunk.file_rows)
        launcher.start(kernel, *what, *arguments, grid=grid, stream=stream)
    else:
        kernel = launcher.kernel("scan_load", "scan_load_vectors")
        states = None if nulls is None else nulls.address
        whole = (chunk.vectors, count, places, chunk.file_rows, states)
        launcher.start(kernel, *whole, *arguments, grid=grid, stream=stream)
    return LoadedVectors(memory, ZERO_COPY, ReadCounters(), tally, parts=parts)


def _load_by_queue_pairs(
    chunk: ChunkMemory, requests: NDArray[Any], memory: rmm.DeviceBuffer, stream: Any
) -> LoadedVectors:
    rings = chunk.state.load_rings
    cut = cut_requests(requests, rings.shape.slot_bytes)
    nsids = np.array([rings.namespace(piece.fragment, chunk.state) for piece in chunk.rows.pieces], np.uint32)
    cut["nsid"] = nsids[cut["nsid"]]
    cut["target"] += np.uint64(memory.ptr)
    tally = chunk.board.tally()
    address = chunk.uploads.put(cut, stream)
    seconds = copy_files(chunk, address, len(cut), None, tally, stream)
    return LoadedVectors(memory, QUEUE_PAIRS, ReadCounters(), tally, seconds)
