"""The whole vectors that hold a selection's rows, picked on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import rmm

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory, NullStates
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.kernel_tables.requests import REQUEST
from bamquery.engine.cuda.scan.reads.load_vectors import QUEUE_PAIRS, ZERO_COPY, copy_files, copy_mapped
from bamquery.engine.cuda.scan.resources.counter_board import Slot
from bamquery.storage.format.layout import VECTOR_ROWS


@dataclass(frozen=True)
class PickedVectors:
    """The vectors that hold a selection's rows, one after the other.

    Attributes:
        memory: where they are.
        slots: which of them each of the chunk's vectors is.
        used: a word for each of these: whether it was read.
    """

    memory: rmm.DeviceBuffer
    slots: rmm.DeviceBuffer
    used: rmm.DeviceBuffer
    tally: Slot
    path: str
    seconds: Callable[[], float]


def fetch_vectors(  # noqa: PLR0917 - one read of one buffer
    chunk: ChunkMemory,
    name: str,
    buffer: str,
    bits: int,
    selection: Selection,
    nulls: NullStates | None,
    behind: int = 0,
) -> PickedVectors:
    """Read the whole vectors that hold the selection's rows; with `nulls`, of those only the mixed ones.

    With `behind`, so many bytes behind each vector come with it, and vectors are 16 bytes farther apart.
    """
    state, rows = chunk.state, chunk.rows
    used = vectors_of_rows(chunk, selection)
    total = chunk.board.take(4)
    slots = chunk.prefix_sums(used.ptr, rows.count, total)
    most = min(rows.count, selection.rows)
    size = picked_bytes(bits, behind)
    memory = chunk.allocate(most * size, f'fetching column "{name}"')
    requests = chunk.allocate(REQUEST.itemsize * most, "picking vectors")
    mapped = chunk.is_mapped(name, buffer)
    places = chunk.places(name, buffer, None if mapped else state.load_rings, state.stream)
    tally = chunk.board.tally()
    states = None if nulls is None else nulls.address
    chunk.launch(
        "scan_select",
        "scan_vector_requests",
        *(used.ptr, slots.ptr, rows.count, chunk.vectors, places, chunk.file_rows, states, bits),
        *(behind, memory.ptr, requests.ptr, state.block_bytes, tally.address if mapped else None),
        items=rows.count,
    )
    seconds: Callable[[], float]
    if mapped:
        clock = chunk.clock(state.stream)
        copy_mapped(chunk, requests.ptr, most, total, state.stream)
        clock.end()
        seconds = clock.seconds
    else:
        seconds = copy_files(chunk, requests.ptr, most, total, tally, state.stream)
    return PickedVectors(memory, slots, used, tally, ZERO_COPY if mapped else QUEUE_PAIRS, seconds)


def vectors_of_rows(chunk: ChunkMemory, selection: Selection) -> rmm.DeviceBuffer:
    """A word for each of the chunk's vectors: 1 where it holds one of the selection's rows, else 0."""
    size = 4 * chunk.rows.count
    used = chunk.allocate(size, "picking vectors")
    cuda = chunk.state.session.gpu.cuda
    cuda("clear memory", "cuMemsetD8Async", used.ptr, 0, size, chunk.state.stream)
    chunk.launch(
        "scan_select",
        "scan_used_vectors",
        *(selection.positions.ptr, selection.rows, used.ptr),
        items=selection.rows,
    )
    return used


def picked_bytes(bits: int, behind: int) -> int:
    """From one vector to the next."""
    return VECTOR_ROWS * bits // 8 + (16 if behind else 0)
