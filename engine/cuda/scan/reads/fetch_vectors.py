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
    rows = chunk.rows
    used = vectors_of_rows(chunk, selection)
    total = chunk.board.take(4)
    slots = chunk.prefix_sums(used.ptr, rows.count, total)
    most = min(rows.count, selection.rows)
    memory = chunk.allocate(most * picked_bytes(bits, behind), f'fetching column "{name}"')
    requests = VectorRequests.begin(chunk, name, buffer, most, total)
    states = None if nulls is None else nulls.address
    chunk.launch(
        "scan_select",
        "scan_vector_requests",
        *(used.ptr, slots.ptr, rows.count, chunk.vectors, requests.places, chunk.file_rows, states, bits),
        *(behind, memory.ptr, requests.memory.ptr, chunk.state.block_bytes, requests.mapped_tally),
        items=rows.count,
    )
    return requests.send(chunk, memory, slots, used)


@dataclass(frozen=True)
class VectorRequests:
    """Requests for whole vectors of one buffer, which a kernel writes and which then are sent.

    Attributes:
        memory: room for them, one after the other.
        most: how many there may be.
        total: gets how many there are.
        mapped: the GPU sees the files, and reads them itself.
        places: where the buffer is in files, for the kernel.
        tally: of what the commands did.
    """

    memory: rmm.DeviceBuffer
    most: int
    total: Slot
    mapped: bool
    places: int
    tally: Slot

    @staticmethod
    def begin(chunk: ChunkMemory, name: str, buffer: str, most: int, total: Slot) -> VectorRequests:
        """Room for at most so many."""
        memory = chunk.allocate(REQUEST.itemsize * most, "picking vectors")
        mapped = chunk.is_mapped(name, buffer)
        rings = None if mapped else chunk.state.load_rings
        places = chunk.places(name, buffer, rings, chunk.state.stream)
        return VectorRequests(memory, most, total, mapped, places, chunk.board.tally())

    @property
    def mapped_tally(self) -> int | None:
        """The tally of the kernel that writes requests: reads of mapped files are counted there."""
        return self.tally.address if self.mapped else None

    def send(
        self, chunk: ChunkMemory, memory: rmm.DeviceBuffer, slots: rmm.DeviceBuffer, used: rmm.DeviceBuffer
    ) -> PickedVectors:
        """Start to read what was asked for into `memory`; the rest is as in PickedVectors."""
        stream = chunk.state.stream
        seconds: Callable[[], float]
        if self.mapped:
            clock = chunk.clock(stream)
            copy_mapped(chunk, self.memory.ptr, self.most, self.total, stream)
            clock.end()
            seconds = clock.seconds
        else:
            seconds = copy_files(chunk, self.memory.ptr, self.most, self.total, self.tally, stream)
        path = ZERO_COPY if self.mapped else QUEUE_PAIRS
        return PickedVectors(memory, slots, used, self.tally, path, seconds)


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
