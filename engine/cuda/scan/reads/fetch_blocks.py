"""The blocks that hold a selection's rows, and nothing else: listed on the GPU, read by its own commands."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import rmm

from bamquery.engine.cuda.scan.chunk.chunk_memory import WARPS, ChunkMemory, NullStates
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.columns.device_columns import row_bits
from bamquery.engine.cuda.scan.reads.gather_rows import pack_validity, pad_size
from bamquery.engine.cuda.scan.resources.counter_board import Slot
from bamquery.engine.cuda.scan.scan_state import DEADLINE_NS
from bamquery.storage.format.layout import VECTOR_ROWS

_TILE: Final = 1024
"""Items that one block of scan_count_blocks looks at."""
_ITEMS: Final = struct.Struct("<QQQQQIIII")
"""ScanItems."""
_FETCH: Final = struct.Struct("<QQQQQQQ")
"""What ScanFetch has behind its items."""


@dataclass(frozen=True)
class RowList:
    """Rows to be fetched.

    Attributes:
        positions: where they are on the GPU.
        most: how many there are at most.
        count: the word on the GPU that says how many.
        offsets: where each of their items begins in its file, as words of 64 bits on the GPU; None: where its
            row does. Then what is fetched are 8 bytes an item, as far as its block has them.
    """

    positions: int
    most: int
    count: Slot
    offsets: int | None = None


@dataclass(frozen=True)
class BlockList:
    """The distinct blocks of a buffer that hold the rows of a list.

    Attributes:
        starts: first row of each.
        ordinals: the block of each row.
        total: the word with how many they are.
    """

    starts: rmm.DeviceBuffer
    ordinals: rmm.DeviceBuffer
    total: Slot


@dataclass
class FetchedColumn:
    """A column that is being fetched.

    Attributes:
        data: its values; booleans have a byte each, and of strings two offsets.
        tallies: what its commands took: of values, and of validity.
        blocks: for each tally, the word with how many blocks it must come to.
        validity: once it is started, its bitmap and the word with the number of nulls; None: no row is null.
    """

    data: rmm.DeviceBuffer
    tallies: list[Slot] = field(default_factory=list)
    blocks: list[Slot] = field(default_factory=list)
    valid: rmm.DeviceBuffer | None = None
    validity: tuple[rmm.DeviceBuffer, Slot] | None = None


class Fetches:
    """Columns to be fetched for one selection, by one kernel.

    Attributes:
        names: of those columns.
    """

    def __init__(self, chunk: ChunkMemory, selection: Selection) -> None:
        self._chunk = chunk
        self._selection = selection
        self._rows = RowList(selection.positions.ptr, selection.rows, selection.count)
        self.names: list[str] = []
        self._jobs: list[bytes] = []
        self._lists: dict[tuple[int, int], BlockList] = {}
        self._columns: list[FetchedColumn] = []
        self._most = 0

    def add(self, name: str, bits: int, nulls: NullStates | None) -> FetchedColumn:
        """Fetch a column, too. Columns of one width have their rows in the same blocks, so to speak."""
        return self._add(name, "values", bits, 0, nulls)

    def add_offsets(self, name: str, nulls: NullStates | None) -> FetchedColumn:
        """Fetch where the strings of a column begin and end."""
        return self._add(name, "offsets", 64, 1, nulls)

    def _add(self, name: str, buffer: str, bits: int, ends: int, nulls: NullStates | None) -> FetchedColumn:
        chunk, rows = self._chunk, self._selection.rows
        data = chunk.allocate(pad_size((rows << ends) * row_bits(bits) // 8), f'fetching column "{name}"')
        fetched = FetchedColumn(data)
        listed = self._lists.get((bits, ends))
        places = self._places(name, buffer)
        if listed is None:
            listed = self._lists[bits, ends] = self._list(self._rows, places, bits, ends)
        self._add_job(fetched, self._rows, listed, places, bits, None, data, ends)
        self.names.append(name)
        if nulls is not None:
            self._add_validity(fetched, name, nulls)
        self._columns.append(fetched)
        return fetched

    def add_words(  # noqa: PLR0917 - as _add_job
        self,
        fetched: FetchedColumn,
        name: str,
        rows: RowList,
        index: rmm.DeviceBuffer | None,
        target: rmm.DeviceBuffer,
        ends: int,
    ) -> None:
        """Fetch 8 bytes for each item of a list that has their offsets: 2 ** `ends` of a row."""
        places = self._places(name, "values")
        listed = self._list(rows, places, 64, ends)
        self._add_job(fetched, rows, listed, places, 64, index, target, ends)
        self.names.append(name)

    def start(self) -> Callable[[], float] | None:
        """Start the kernel; the result, called once it has ended, is how long it ran."""
        if not self._jobs:
            return None
        chunk = self._chunk
        state = chunk.state
        rings = state.fetch_rings
        jobs = chunk.uploads.put(b"".join(self._jobs), state.stream)
        arguments = (
            *(jobs, len(self._jobs), rings.shape.lba_bytes, rings.shape.lanes, rings.shape.nap_ns),
            *(DEADLINE_NS, chunk.board.control.address, chunk.board.fetch_errors.address),
        )
        kernel = state.launcher.kernel("fetch/blocks", "scan_fetch")
        with state.session.lock:
            launch = rings.start(kernel, arguments, commands=self._most, stream=state.stream)
        for fetched in self._columns:
            if fetched.valid is not None:
                fetched.validity = pack_validity(chunk, fetched.valid, self._rows.most)
        return state.note_launch(launch)

    def _add_validity(self, fetched: FetchedColumn, name: str, nulls: NullStates) -> None:
        """Bits are read only for rows of vectors that have nulls and values."""
        chunk, rows = self._chunk, self._rows
        fetched.valid = chunk.allocate(rows.most, "reading nulls")
        chunk.launch(
            "scan_gather",
            "scan_valid_by_vector",
            *(nulls.address, rows.positions, rows.most, fetched.valid.ptr),
            items=rows.most,
        )
        if not (nulls.states == 1).any():
            return
        tiles = -(-rows.most // VECTOR_ROWS)
        mask = chunk.allocate(tiles * VECTOR_ROWS // 8, "reading nulls")
        counts = chunk.allocate(4 * tiles, "reading nulls")
        chunk.launch(
            "scan_gather",
            "scan_with_nulls",
            *(nulls.address, rows.positions, rows.most, tiles, mask.ptr, counts.ptr),
            items=tiles,
            of_a_block=WARPS,
        )
        total = chunk.board.take(4)
        sums = chunk.prefix_sums(counts.ptr, tiles, total)
        index = chunk.allocate(4 * rows.most, "reading nulls")
        chunk.launch(
            "scan_select",
            "scan_positions",
            *(mask.ptr, sums.ptr, tiles, index.ptr),
            items=tiles,
            of_a_block=WARPS,
        )
        positions = chunk.allocate(4 * rows.most, "reading nulls")
        chunk.launch(
            "scan_select",
            "scan_pick",
            *(rows.positions, index.ptr, total.address, positions.ptr),
            items=rows.most,
        )
        mixed = RowList(positions.ptr, rows.most, total)
        places = self._places(name, "validity")
        listed = self._list(mixed, places, 1)
        self._add_job(fetched, mixed, listed, places, 1, index, fetched.valid)

    def _places(self, name: str, buffer: str) -> int:
        return self._chunk.file_places(name, buffer, self._chunk.state.fetch_rings)

    def _items(self, rows: RowList, places: int, bits: int, ends: int) -> bytes:
        block = self._chunk.state.block_bytes
        count = rows.count.address
        where = (rows.positions, count, self._chunk.vectors, places, rows.offsets or 0)
        return _ITEMS.pack(*where, bits, block, ends, 0)

    def _list(self, rows: RowList, places: int, bits: int, ends: int = 0) -> BlockList:
        chunk = self._chunk
        most = rows.most << ends
        tiles = -(-most // _TILE)
        counts = chunk.allocate(4 * tiles, "listing blocks")
        items = self._items(rows, places, bits, ends)
        launcher = chunk.state.launcher
        launcher.start(
            launcher.kernel("scan_blocks", "scan_count_blocks"),
            *(items, counts.ptr),
            grid=tiles,
            stream=chunk.state.stream,
        )
        total = chunk.board.take(4)
        sums = chunk.prefix_sums(counts.ptr, tiles, total)
        starts = chunk.allocate(4 * (most + 1), "listing blocks")
        ordinals = chunk.allocate(4 * most, "listing blocks")
        launcher.start(
            launcher.kernel("scan_blocks", "scan_list_blocks"),
            *(items, sums.ptr, starts.ptr, ordinals.ptr),
            grid=tiles,
            stream=chunk.state.stream,
        )
        return BlockList(starts, ordinals, total)

    def _add_job(  # noqa: PLR0917 - a ScanFetch's fields
        self,
        fetched: FetchedColumn,
        rows: RowList,
        listed: BlockList,
        places: int,
        bits: int,
        index: rmm.DeviceBuffer | None,
        target: rmm.DeviceBuffer,
        ends: int = 0,
    ) -> None:
        board = self._chunk.board
        tally = board.tally()
        fetched.tallies.append(tally)
        fetched.blocks.append(listed.total)
        self._most += rows.most << ends
        self._jobs.append(
            self._items(rows, places, bits, ends)
            + _FETCH.pack(
                0 if index is None else index.ptr,
                listed.starts.ptr,
                listed.ordinals.ptr,
                listed.total.address,
                target.ptr,
                board.take(4).address,
                tally.address,
            )
        )
