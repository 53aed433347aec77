"""A chunk on the GPU: its tables, counters and what must live until its kernels have ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import rmm
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.board import Board, Slot, Uploads
from bamquery.engine.cuda.scan.chunk_tables import ChunkRows, null_states, places
from bamquery.engine.cuda.scan.rings import Rings
from bamquery.engine.cuda.scan.scan_state import ScanState
from bamquery.engine.operators.scan_chunks import Piece
from bamquery.storage.layout import Extent
from bamquery.storage.stored_buffers import StoredBuffers

SCAN_THREADS: Final = 1024
WARPS: Final = 8
"""Of a block of 256 threads: kernels with a warp for each vector."""


@dataclass(frozen=True)
class Nulls:
    """Where a column of the chunk has nulls: a state for each vector, here and on the GPU."""

    states: NDArray[np.uint8]
    address: int


class ChunkMemory:
    """What is on the GPU for one chunk; one thread uses it."""

    def __init__(self, state: ScanState, pieces: Sequence[Piece]) -> None:
        """Bring the chunk's tables to the GPU, on the scan's copy stream."""
        self.state: Final = state
        self.all_pieces: Final = tuple(pieces)
        self.rows: Final = ChunkRows.of(pieces)
        self.board: Final = Board(state.session, state.resources.blocks)
        self.uploads: Final = Uploads(state.session, state.resources.blocks)
        stream = state.copy_stream
        self.vectors: Final = self.uploads.put(self.rows.vectors, stream)
        self.vector_rows: Final = self.uploads.put(self.rows.vector_rows, stream)
        edges = np.append(self.rows.firsts, np.uint32(len(self.rows.firsts))).astype(np.uint32)
        self.firsts: Final = self.uploads.put(edges, stream)
        self.firsts_count: Final = self.firsts + 4 * len(self.rows.firsts)
        """The word with how many they are."""
        held = [piece.fragment.rows for piece in self.rows.pieces]
        self.file_rows: Final = self.uploads.put(np.array(held, np.uint32), stream)
        self.keep: Final[list[Any]] = []
        """Memory that kernels use which may not have ended."""
        self._nulls: dict[str, Nulls | None] = {}
        self._closed = False

    def allocate(self, size: int, what: str) -> rmm.DeviceBuffer:
        """Memory ordered on the session's stream, kept as long as this."""
        memory = self.state.session.allocate(max(size, 16), what)
        self.keep.append(memory)
        return memory

    def release(self, memory: rmm.DeviceBuffer) -> None:
        """Nobody needs it but what the session's stream was given: its memory goes back behind that."""
        self.keep[:] = [kept for kept in self.keep if kept is not memory]

    def buffers(self, column: str) -> list[StoredBuffers]:
        """Of a column, in each piece."""
        return [self.state.buffers(piece.fragment, column) for piece in self.rows.pieces]

    def nulls(self, column: str, stream: Any) -> Nulls | None:
        """Where the column has nulls; None if it has none in this chunk."""
        if column not in self._nulls:
            states = null_states(self.rows, self.buffers(column))
            address = 0 if states is None else self.uploads.put(states, stream)
            self._nulls[column] = None if states is None else Nulls(states, address)
        return self._nulls[column]

    def extents(self, column: str, part: str) -> list[Extent | None]:
        """The `values` or the `validity` of a column in each piece."""
        return [getattr(buffers, part) for buffers in self.buffers(column)]

    def places(self, column: str, part: str, rings: Rings | None, stream: Any) -> int:
        """A ScanPlace for each piece: namespaces of `rings`, or else where the page cache has the files."""
        extents = self.extents(column, part)
        offsets = [0 if extent is None else extent.offset for extent in extents]
        fragments = [piece.fragment for piece in self.rows.pieces]
        nsids = [0 if rings is None else rings.namespace(fragment) for fragment in fragments]
        maps = {}
        if rings is None:
            for number, (fragment, extent) in enumerate(zip(fragments, extents, strict=True)):
                if extent is not None and extent.length:
                    pinned = self.state.pinned(fragment, extent)
                    assert not isinstance(pinned, str), pinned
                    maps[number] = (pinned.address - extent.offset) % (1 << 64)
        return self.uploads.put(places(offsets, maps, nsids), stream)

    def mapped(self, column: str, part: str) -> bool:
        """Whether the GPU reaches the buffer in the page cache, in every piece."""
        return all(
            extent is None or not extent.length or not isinstance(self.state.pinned(p.fragment, extent), str)
            for p, extent in zip(self.rows.pieces, self.extents(column, part), strict=True)
        )

    def launch(
        self, file: str, name: str, *arguments: Any, items: int, of_a_block: int = 256, stream: Any = None
    ) -> None:
        """Start a kernel of `file` for so many items, on the session's stream if `stream` is None."""
        launcher = self.state.launcher
        launcher.start(
            launcher.kernel(file, name),
            *arguments,
            grid=launcher.grid(items, of_a_block),
            stream=self.state.stream if stream is None else stream,
        )

    def prefix_sums(self, counts: int, count: int, total: Slot) -> rmm.DeviceBuffer:
        """Sums of the words before each of `count` words, and of all behind the last, which `total` gets."""
        sums = self.allocate(4 * (count + 1), "selecting rows")
        launcher = self.state.launcher
        launcher.start(
            launcher.kernel("scan_select", "scan_offsets"),
            *(counts, count, sums.ptr, total.address),
            grid=1,
            block=SCAN_THREADS,
            stream=self.state.stream,
        )
        return sums

    def close(self) -> None:
        """The GPU has done with it."""
        if not self._closed:
            self._closed = True
            self.uploads.close()
            self.board.close()
            self.keep.clear()
