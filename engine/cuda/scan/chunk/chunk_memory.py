"""A chunk on the GPU: its tables, counters and what must live until its kernels have ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import rmm
from numpy.typing import NDArray

from bamquery.engine.cuda.launcher import WARPS
from bamquery.engine.cuda.scan.chunk.chunk_sizes import ListedChunk
from bamquery.engine.cuda.scan.columns.scan_column import Form, ScanColumn, scan_column
from bamquery.engine.cuda.scan.kernel_tables.packed_requests import (
    PayloadRanges,
    payload_requests,
    run_requests,
)
from bamquery.engine.cuda.scan.kernel_tables.requests import PLACE, VECTOR, ChunkRows
from bamquery.engine.cuda.scan.resources.cached_pages import is_cached
from bamquery.engine.cuda.scan.resources.counter_board import CounterBoard, Slot, Uploads
from bamquery.engine.cuda.scan.resources.host_blocks import HostBlock
from bamquery.engine.cuda.scan.resources.pinned_files import FilePlaces
from bamquery.engine.cuda.scan.resources.rings import Rings
from bamquery.engine.cuda.scan.scan_clock import StreamTime
from bamquery.engine.cuda.scan.scan_state import ScanState
from bamquery.storage.encodings.fsst.parameters import FSST_VECTOR
from bamquery.storage.encodings.packed.parameters import PACKED_VECTOR
from bamquery.storage.format.layout import Extent
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.stored_buffers import StoredBuffers
from bamquery.storage.read_planner.cost_model import Path

_PARTS: Final = ("values", "validity", "offsets")

__all__ = ["WARPS", "ChunkMemory", "NullStates"]


@dataclass(frozen=True)
class NullStates:
    """Where a column of the chunk has nulls: a state for each vector, here and on the GPU."""

    states: NDArray[np.uint8]
    address: int


class ChunkMemory:
    """What is on the GPU for one chunk; one thread uses it."""

    def __init__(self, state: ScanState, chunk: ListedChunk) -> None:
        """Make its counters and edges, on the scan's look stream.

        Attributes:
            vectors: a ScanVector for each vector, on the GPU; their pieces are fragments of the run.
            vector_rows: rows of each, half words.
            parts: of each vector, see `VectorList.parts`.
            file_rows: of each fragment of the run, words.
            firsts: first vector of each piece, and the number of vectors behind the last, words.
            firsts_count: the word with how many of these words there are.
            keep: memory that kernels use which may not have ended.
        """
        self.state: Final = state
        self.listed: Final = chunk.listed
        self.first: Final = chunk.first
        self.rows: Final = ChunkRows.from_pieces(chunk.chunk.pieces)
        self.fragments: Final = [
            number
            for number, piece in zip(chunk.fragments, chunk.chunk.pieces, strict=True)
            if len(piece.vectors)
        ]
        self.board: Final = CounterBoard(state.session, state.resources.blocks)
        self.uploads: Final = Uploads(state.session, state.resources.blocks, state.launcher)
        self.vectors: Final = chunk.listed.vectors + VECTOR.itemsize * chunk.first
        self.vector_rows: Final = chunk.listed.vector_rows + 2 * chunk.first
        parts = chunk.listed.parts
        self.parts: Final = None if parts is None else parts + chunk.first
        self.file_rows: Final = chunk.listed.resident.rows
        edges = np.append(self.rows.firsts, np.uint32(len(self.rows.firsts)))
        self.firsts: Final = self.uploads.put(edges, state.look_stream)
        self.firsts_count: Final = self.firsts + 4 * len(self.rows.firsts)
        self.keep: Final[list[Any]] = []
        self._nulls: dict[str, NullStates | None] = {}
        self._places: dict[Rings, dict[tuple[str, str], int]] = {}
        self._payload_bytes: dict[str, int] = {}
        self._pinned: dict[tuple[str, str], bool] = {}
        self._cold: dict[str, bool] = {}
        self._maps: dict[tuple[str, str], FilePlaces | None] = {}
        self._clocks: list[StreamTime] = []
        self._host_blocks: list[HostBlock] = []
        self._closed = False

    def allocate(self, size: int, what: str, stream: Any = None) -> rmm.DeviceBuffer:
        """Memory ordered on a stream, the session's if None, kept as long as this; the thread has entered."""
        memory = self.state.session.allocate_entered(max(size, 16), what, stream)
        self.keep.append(memory)
        return memory

    def clock(self, stream: Any) -> StreamTime:
        """Begins now, and is kept as long as this."""
        clock = StreamTime(self.state.session, stream)
        self._clocks.append(clock)
        return clock

    def host_block(self, size: int) -> HostBlock:
        """Pinned memory of the host, kept as long as this."""
        block = self.state.resources.blocks.take(size)
        self._host_blocks.append(block)
        return block

    def release(self, memory: rmm.DeviceBuffer) -> None:
        """Nobody needs it but what the session's stream was given: its memory goes back behind that."""
        self.keep[:] = [kept for kept in self.keep if kept is not memory]

    def buffers(self, column: str) -> list[StoredBuffers]:
        """Of a column, in each piece."""
        buffers = self.listed.resident.buffers(column)
        return [buffers[number] for number in self.fragments]

    def nulls(self, column: str) -> NullStates | None:
        """Where the column has nulls; None if it has none in this chunk."""
        if column not in self._nulls:
            found = self.listed.states(column, self.first, self.rows.count)
            self._nulls[column] = None if found is None else NullStates(*found)
        return self._nulls[column]

    def checksums(self, column: str, buffer: str) -> int:
        """Of each vector, words on the GPU."""
        return self.listed.checksums(column, buffer) + 4 * self.first

    def part_checksums(self, column: str) -> tuple[int, int]:
        """Of the parts of all vectors of the run, and the chunk's vectors' numbers in it, words on the GPU.

        The chunk has `parts`, and so has the column.
        """
        return self.listed.resident.part_checksums(column), self.listed.numbers_address + 4 * self.first

    def stored_column(self, column: ScanColumn) -> ScanColumn:
        """The column as this chunk's fragments have it: packed strings have a dictionary."""
        if column.form is not Form.STRINGS or not self.is_packed(column.name):
            return column
        return scan_column(column.name, column.kind, has_dictionary=True)

    def is_packed(self, column: str) -> bool:
        """Whether the column's vectors are packed, in all pieces or in none."""
        return self.listed.resident.is_packed(column)

    def is_compressed(self, column: str) -> bool:
        """Whether the column are compressed strings, in all pieces or in none."""
        return self.listed.resident.is_compressed(column)

    def parameters(self, column: str) -> int:
        """Of each vector of a packed column PackedVectors, of strings StringVectors, on the GPU."""
        width = FSST_VECTOR.itemsize if self.is_compressed(column) else PACKED_VECTOR.itemsize
        return self.listed.parameters(column) + width * self.first

    def payloads(self, column: str) -> list[PayloadRanges]:
        """Where the vectors of a packed or compressed column are in each piece's buffer."""
        payloads = self.listed.resident.payloads(column)
        return [payloads[number] for number in self.fragments]

    def payload_requests(self, column: str, wanted: NDArray[np.bool_] | None) -> tuple[NDArray[Any], int]:
        """What loads the payloads of the chunk's vectors, or those `wanted`; see `packed_requests`."""
        resident, first, end = self.listed.resident, self.first, self.first + self.rows.count
        begins, sizes = resident.payload_begins(column), resident.payload_sizes(column)
        numbers = self.listed.numbers
        if numbers is None and wanted is None:
            fragments = resident.firsts[self.fragments].astype(np.int64)
            sums, breaks = resident.payload_sums(column), resident.payload_breaks(column)
            return run_requests((first, end), breaks, begins, sums, fragments)
        if numbers is None:
            begins, sizes = begins[first:end], sizes[first:end]
        else:
            begins, sizes = begins.take(numbers[first:end]), sizes.take(numbers[first:end])
        pieces = np.repeat(np.arange(len(self.fragments)), np.diff(self.rows.firsts))
        return payload_requests(begins, sizes, pieces, wanted)

    def payload_bytes(self, column: str) -> int:
        """Of all of the chunk's vectors."""
        found = self._payload_bytes.get(column)
        if found is None:
            found = self.listed.payload_bytes(column, self.first, self.rows.count)
            self._payload_bytes[column] = found
        return found

    def extents(self, column: str, buffer: str) -> list[Extent | None]:
        """The `values` or the `validity` of a column in each piece."""
        return [getattr(buffers, buffer) for buffers in self.buffers(column)]

    def file_places(self, column: str, buffer: str, rings: Rings) -> int:
        """The same in namespaces of `rings`, for the session's stream: made for all columns at once."""
        if rings not in self._places:
            lowest, end = self.fragments[0], self.fragments[-1] + 1
            resident = self.listed.resident
            nsids = self.state.namespaces(resident, rings, self.fragments)[lowest:end]
            names = [column.name for column in self.state.columns.values()]
            keys = [(name, part) for name in names for part in _PARTS]
            made = np.zeros((len(keys), end - lowest), PLACE)
            made["nsid"] = nsids
            for at, key in enumerate(keys):
                made[at]["offset"] = resident.offsets(*key)[lowest:end]
            address = self.uploads.put(made, self.state.stream) - PLACE.itemsize * lowest
            self._places[rings] = {
                key: address + at * PLACE.itemsize * (end - lowest) for at, key in enumerate(keys)
            }
        return self._places[rings][column, buffer]

    def places(self, column: str, buffer: str, rings: Rings | None, stream: Any) -> int:
        """Where a ScanPlace for each fragment of the run would be; only those of the chunk's are there.

        With namespaces of `rings`, or else where the page cache has the files.
        """
        resident, lowest, end = self.listed.resident, self.fragments[0], self.fragments[-1] + 1
        if rings is None:
            run = self.state.pinned_run(resident, column, buffer)
            if run is not None:
                return resident.mapped_places(column, buffer, run.places.addresses)
        made = np.zeros(end - lowest, PLACE)
        made["offset"] = resident.offsets(column, buffer)[lowest:end]
        if rings is None:
            maps = self._mapped(column, buffer)
            assert maps is not None, f"{buffer} of {column} are not pinned"
            made["map"] = maps.addresses
        else:
            made["nsid"] = self.state.namespaces(resident, rings, self.fragments)[lowest:end]
        return self.uploads.put(made, stream) - PLACE.itemsize * lowest

    def upload_by_fragment(self, values: NDArray[Any], stream: Any) -> int:
        """Where a value for each fragment of the run would be; only those of the chunk's pieces are there."""
        lowest = self.fragments[0]
        made = np.zeros(self.fragments[-1] + 1 - lowest, values.dtype)
        made[np.array(self.fragments) - lowest] = values
        return self.uploads.put(made, stream) - made.itemsize * lowest

    def is_mapped(self, column: str, buffer: str) -> bool:
        """Whether the GPU reaches the buffer in the page cache, in every piece."""
        return self._mapped(column, buffer) is not None

    def sees_rows(self, column: str, buffer: str, rows: int) -> bool:
        """The same for single rows, so many in all: what is not pinned is, where that is worth it by now."""
        if not self._is_pinned(column, buffer):
            saved_s = rows / self.state.model.paths[Path.BLOCKS].commands / len(self.fragments)
            pinned = [
                self.state.pin_if_worth(fragment, extent, saved_s)
                for fragment, extent in self._stored_extents(column, buffer)
                if extent is not None
            ]
            if any(isinstance(found, str) for found in pinned):
                return False
        return self._mapped(column, buffer) is not None

    def mapped_places(self, column: str, buffer: str, *, by_host: bool = False) -> NDArray[np.uint64]:
        """Where the GPU, or this process, would see byte 0 of each piece's file; it sees the buffer."""
        maps = self._mapped(column, buffer)
        assert maps is not None, f"{buffer} of {column} are not pinned"
        every: NDArray[np.uint64] = maps.hosts if by_host else maps.addresses
        found: NDArray[np.uint64] = every[np.array(self.fragments) - self.fragments[0]]
        return found

    def is_pinned(self, column: str) -> bool:
        """Whether the GPU sees the column's values now, so that nothing need be pinned for that."""
        return all(self._is_pinned(column, buffer) for buffer in ("values", "validity"))

    def is_cold(self, column: str) -> bool:
        """Whether the GPU does not see the column's values now, and the page cache lacks the first."""
        if column not in self._cold:
            self._cold[column] = not self.state.direct and self._is_cold(column)
        return self._cold[column]

    def _is_cold(self, column: str) -> bool:
        for buffer in ("values", "validity"):
            for fragment, extent in self._stored_extents(column, buffer)[:1]:
                if extent is None or self.state.is_pinned(fragment, extent):
                    continue
                if not is_cached(str(fragment.path), extent):
                    return True
        return False

    def ask_ahead(self, column: str) -> None:
        """Have the column's pages read that are not pinned, before somebody waits for them."""
        for buffer in ("offsets", "values", "validity"):
            if not self._is_pinned(column, buffer):
                self.state.read_ahead.ask(self._stored_extents(column, buffer))

    def _is_pinned(self, column: str, buffer: str) -> bool:
        if self.state.pinned_run(self.listed.resident, column, buffer) is not None:
            return True
        key = (column, buffer)
        if key not in self._pinned:
            self._pinned[key] = all(
                extent is None or self.state.is_pinned(fragment, extent)
                for fragment, extent in self._stored_extents(column, buffer)
            )
        return self._pinned[key]

    def _mapped(self, column: str, buffer: str) -> FilePlaces | None:
        """Where the files of fragments are seen, from the first of the chunk's to the last.

        Only those of the chunk's are there that have the buffer. None: one cannot be pinned.
        """
        run = self.state.pinned_run(self.listed.resident, column, buffer)
        if run is not None:
            return run.places.slice(self.fragments[0], self.fragments[-1] + 1)
        key = (column, buffer)
        if key not in self._maps:
            self._maps[key] = self._pin(column, buffer)
        return self._maps[key]

    def _pin(self, column: str, buffer: str) -> FilePlaces | None:
        lowest = self.fragments[0]
        found = FilePlaces.none(self.fragments[-1] + 1 - lowest)
        for number, (fragment, extent) in zip(
            self.fragments, self._stored_extents(column, buffer), strict=True
        ):
            if extent is None:
                continue
            pinned = self.state.pin(fragment, extent)
            if isinstance(pinned, str):
                return None
            found.put(number - lowest, pinned, extent)
        return found

    def _stored_extents(self, column: str, buffer: str) -> list[tuple[Fragment, Extent | None]]:
        stored = self.listed.resident.stored(column, buffer)
        return [stored[number] for number in self.fragments]

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

    def prefix_sums(self, counts: int, count: int, total: Slot, stream: Any = None) -> rmm.DeviceBuffer:
        """Sums of the words before each of `count` words, and of all behind the last, which `total` gets."""
        sums = self.allocate(4 * (count + 1), "selecting rows", stream)
        where = self.state.stream if stream is None else stream
        self.state.launcher.prefix_sums(counts, count, sums.ptr, total.address, where)
        return sums

    def stop(self, stream: Any) -> None:
        """Nobody wants the rows any more: kernels that drive queue pairs take no more work."""
        control = self.board.control.address
        self.state.session.gpu.cuda("stop kernels", "cuMemsetD8Async", control, 1, 4, stream)

    def close(self) -> None:
        """The GPU has done with it."""
        if not self._closed:
            self._closed = True
            self.uploads.close()
            self.board.close()
            self.keep.clear()
            for clock in self._clocks:
                clock.close()
            for block in self._host_blocks:
                self.state.resources.blocks.give_back(block)
            self._host_blocks.clear()
