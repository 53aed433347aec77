"""Payloads of packed vectors in the GPU's memory: all of a chunk's, or those that hold a selection's rows."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import rmm
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.chunk.chunk_memory import WARPS, ChunkMemory
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.kernel_tables.packed_requests import PACKED, SLACK
from bamquery.engine.cuda.scan.reads.checksums import CHECK_BLOCKS
from bamquery.engine.cuda.scan.reads.fetch_vectors import PickedVectors, VectorRequests, vectors_of_rows
from bamquery.engine.cuda.scan.reads.load_vectors import (
    COPY_BLOCKS,
    LARGE_RUN,
    ZERO_COPY,
    LoadedVectors,
    load_requests,
)
from bamquery.engine.cuda.scan.reads.vector_check import VectorCheck, checksum_check
from bamquery.storage.readers.block_reader import ReadCounters

FILES: Final = struct.Struct("<5Q2I")
"""PackedFiles."""
_PARTS_AT_ONCE: Final = 32
"""Vectors of which a warp loads parts together."""


@dataclass(frozen=True)
class Payloads:
    """Payloads of a column.

    Attributes:
        memory: where they are, one after the other.
        slots: of each vector, where its payload is in it, in units of 16 bytes.
        used: which vectors were read, as words on the GPU; None: all.
        parts: of which only parts were read, see `ChunkMemory.parts`; None: all were read whole. Where a
            part is in its payload does not depend on what is there beside it.
    """

    memory: rmm.DeviceBuffer
    slots: rmm.DeviceBuffer
    used: int | None
    parts: int | None = None

    def pack(self, chunk: ChunkMemory, column: str) -> bytes:
        """The ScanPacked."""
        return PACKED.pack(
            *(chunk.parameters(column), self.slots.ptr, self.memory.ptr, chunk.vectors),
            *(chunk.listed.resident.scales(column), chunk.vector_rows),
        )


def load_payloads(
    chunk: ChunkMemory,
    column: str,
    stream: Any,
    wanted: NDArray[np.bool_] | None,
    *,
    in_parts: bool = False,
) -> tuple[LoadedVectors, Payloads]:
    """Start to load the payloads of the chunk's vectors, or of those that are `wanted`.

    `in_parts`: of all vectors, what zone maps left of them is enough, where reading that is less.

    Raises:
        StorageError: a file is not there as it was written.
        MemoryLimitError: there is not enough memory.
    """
    rows, state = chunk.rows, chunk.state
    total = chunk.payload_bytes(column)
    parts = chunk.parts if in_parts and chunk.listed.resident.has_parts(column) else None
    scattered = parts is not None or (total < LARGE_RUN * rows.runs and rows.runs > len(rows.pieces))
    requests = None
    if wanted is not None or not scattered or not chunk.is_mapped(column, "values"):
        requests, total = chunk.payload_requests(column, wanted)
    memory = chunk.allocate(total + SLACK, f'streaming column "{column}"')
    used = None if wanted is None else chunk.uploads.put(wanted.astype(np.uint32), stream)
    if requests is not None:
        loaded = load_requests(chunk, column, "values", requests, memory, stream)
        looking = stream
        if stream is state.copy_stream:  # not in the way of the next copy
            looking = state.look_stream
            state.session.follow(looking, state.stream)
        return loaded, Payloads(memory, _place(chunk, column, used, looking), used)
    if stream is not state.stream:
        state.session.follow(stream, state.stream)
    clock = chunk.clock(stream)
    slots = _place(chunk, column, used, stream)
    tally = chunk.board.tally()
    files = _files(chunk, column, chunk.places(column, "values", None, stream), used)
    kernel, of_a_warp = ("packed/load", "scan_packed_load"), 1
    if parts is not None:
        files = _in_parts(files, parts)
        kernel, of_a_warp = ("packed/parts", "scan_packed_load_parts"), _PARTS_AT_ONCE
    launcher = state.launcher
    launcher.start(
        launcher.kernel(*kernel),
        *(files, slots.ptr, rows.count, memory.ptr, chunk.board.take(4).address, tally.address),
        grid=max(1, min(-(-rows.count // (WARPS * of_a_warp)), COPY_BLOCKS)),
        stream=stream,
    )
    clock.end()
    loaded = LoadedVectors(memory, ZERO_COPY, ReadCounters(), tally, clock.seconds, parts)
    return loaded, Payloads(memory, slots, used, parts)


def fetch_payloads(chunk: ChunkMemory, column: str, selection: Selection) -> tuple[PickedVectors, Payloads]:
    """Read the payloads of the vectors that hold the selection's rows."""
    rows = chunk.rows
    used = vectors_of_rows(chunk, selection)
    total = chunk.board.take(4)
    numbers = chunk.prefix_sums(used.ptr, rows.count, total)
    slots = _place(chunk, column, used.ptr, chunk.state.stream)
    most = min(rows.count, selection.rows)
    largest = max(int(payloads.sizes.max(initial=0)) for payloads in chunk.payloads(column))
    size = min(chunk.payload_bytes(column), most * largest)
    memory = chunk.allocate(size + SLACK, f'fetching column "{column}"')
    requests = VectorRequests.begin(chunk, column, "values", most, total)
    files = _files(chunk, column, requests.places, used.ptr)
    chunk.launch(
        "packed/load",
        "scan_packed_requests",
        *(files, numbers.ptr, slots.ptr, rows.count, memory.ptr, requests.memory.ptr, requests.mapped_tally),
        items=rows.count,
    )
    return requests.send(chunk, memory, slots, used), Payloads(memory, slots, used.ptr)


def check_payloads(chunk: ChunkMemory, column: str, payloads: Payloads, stream: Any) -> VectorCheck:
    """Start to compare payloads, which are there for `stream`, with their checksums."""
    bad = chunk.board.take(4)
    files = _files(chunk, column, 0, payloads.used)
    kernel = "packed/load", "scan_packed_crc"
    part_checksums: tuple[int, ...] = ()
    if payloads.parts is not None:
        files = _in_parts(files, payloads.parts)
        kernel, part_checksums = ("packed/parts", "scan_packed_crc_parts"), chunk.part_checksums(column)
    launcher = chunk.state.launcher
    launcher.start(
        launcher.kernel(*kernel),
        *(files, payloads.slots.ptr, chunk.rows.count, payloads.memory.ptr),
        *(chunk.checksums(column, "values"), *part_checksums, bad.address),
        grid=launcher.grid(chunk.rows.count, WARPS, CHECK_BLOCKS),
        stream=stream,
    )
    return checksum_check(column, bad, "values")


def _place(chunk: ChunkMemory, column: str, used: int | None, stream: Any) -> rmm.DeviceBuffer:
    """Where each payload goes."""
    count = chunk.rows.count
    sizes = chunk.allocate(4 * count, "placing vectors", stream)
    chunk.launch(
        "packed/load",
        "scan_packed_sizes",
        *(_files(chunk, column, 0, used), count, sizes.ptr),
        items=count,
        stream=stream,
    )
    return chunk.prefix_sums(sizes.ptr, count, chunk.board.take(4), stream)


def _files(chunk: ChunkMemory, column: str, places: int, used: int | None) -> bytes:
    width = max(chunk.buffers(column)[0].bits // 8, 1)
    return FILES.pack(
        *(chunk.parameters(column), chunk.vectors, places, chunk.vector_rows, used or 0),
        *(width, chunk.state.block_bytes),
    )


def _in_parts(files: bytes, parts: int) -> bytes:
    """The PackedPartFiles (engine/kernels/packed/packed_parts.hpp)."""
    return files + struct.pack("<Q", parts)
