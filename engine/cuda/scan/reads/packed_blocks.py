"""Rows of packed columns out of single blocks: their codes first, and what these ask for besides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import rmm

from bamquery.engine.cuda.scan.chunk.chunk_memory import WARPS, ChunkMemory
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.columns.device_columns import DeviceColumn, row_bits
from bamquery.engine.cuda.scan.reads.fetch_blocks import FetchedColumn, Fetches, RowList
from bamquery.engine.cuda.scan.reads.gather_rows import pack_validity, pad_size
from bamquery.engine.cuda.scan.reads.packed_rows import pack_rows, value_define
from bamquery.storage.format.layout import VECTOR_ROWS

_FILE: Final = "packed/blocks"


@dataclass(frozen=True)
class _Marked:
    """Rows of a selection that a kernel marks.

    Attributes:
        mask: a bit each.
        counts: how many there are of each 1,024.
        offsets: of all rows' items.
    """

    mask: rmm.DeviceBuffer
    counts: rmm.DeviceBuffer
    offsets: rmm.DeviceBuffer


@dataclass
class PackedBlocks:
    """A packed column of which blocks are fetched: `start`, then `decode`, then `finish`.

    Attributes:
        fetched: what its commands took.
    """

    chunk: ChunkMemory
    name: str
    kind: pa.DataType
    selection: Selection
    fetched: FetchedColumn = field(init=False)
    _offsets: rmm.DeviceBuffer = field(init=False)
    _words: rmm.DeviceBuffer = field(init=False)
    _valid: rmm.DeviceBuffer | None = field(init=False, default=None)
    _more: tuple[RowList, rmm.DeviceBuffer] | None = field(init=False, default=None)

    def start(self, fetches: Fetches) -> None:
        """Have the blocks fetched that hold the rows' codes."""
        chunk, rows = self.chunk, self.selection.rows
        bits = row_bits(chunk.buffers(self.name)[0].bits)
        data = chunk.allocate(pad_size(rows * bits // 8), f'fetching column "{self.name}"')
        self.fetched = FetchedColumn(data)
        marked = self._mark(2)
        self._offsets = marked.offsets
        self._launch("scan_packed_items", marked.offsets.ptr, marked.mask.ptr, marked.counts.ptr)
        listed, index = self._list(marked, 2)
        self._words = chunk.allocate(16 * rows, "fetching codes")
        fetches.add_words(self.fetched, self.name, listed, index, self._words, 1)

    def decode(self, fetches: Fetches) -> None:
        """Once the codes are there: find the values, and have fetched what is behind codes."""
        chunk = self.chunk
        if chunk.nulls(self.name) is not None:
            self._valid = chunk.allocate(self.selection.rows, "reading nulls")
        marked = self._mark(1)
        self._launch(
            "scan_packed_words",
            *(self._offsets.ptr, self._words.ptr, self.fetched.data.ptr, self._valid_address),
            *(marked.offsets.ptr, marked.mask.ptr, marked.counts.ptr),
        )
        if not any(payloads.has_more for payloads in chunk.payloads(self.name)):
            return
        listed, index = self._list(marked, 1)
        self._more = listed, index
        fetches.add_words(self.fetched, self.name, listed, index, self._words, 0)

    def finish(self) -> DeviceColumn:
        """The column, once all is there."""
        chunk, rows = self.chunk, self.selection.rows
        if self._more is not None:
            listed, index = self._more
            self._launch(
                "scan_packed_more",
                *(index.ptr, listed.count.address, self._words.ptr),
                *(self.fetched.data.ptr, self._valid_address),
            )
        bits = row_bits(chunk.buffers(self.name)[0].bits)
        found = DeviceColumn(self.kind, bits, rows, self.fetched.data)
        if self._valid is not None:
            found.validity, found.nulls = pack_validity(chunk, self._valid, rows)
        return found

    @property
    def _valid_address(self) -> int | None:
        return None if self._valid is None else int(self._valid.ptr)

    def _mark(self, each: int) -> _Marked:
        chunk, rows = self.chunk, self.selection.rows
        tiles = -(-rows // VECTOR_ROWS)
        return _Marked(
            chunk.allocate(tiles * VECTOR_ROWS // 8, "listing rows"),
            chunk.allocate(4 * tiles, "listing rows"),
            chunk.allocate(8 * each * rows, "listing rows"),
        )

    def _list(self, marked: _Marked, each: int) -> tuple[RowList, rmm.DeviceBuffer]:
        """The marked rows, with the offsets of their items; and their numbers among all."""
        chunk, rows = self.chunk, self.selection.rows
        tiles = -(-rows // VECTOR_ROWS)
        total = chunk.board.take(4)
        sums = chunk.prefix_sums(marked.counts.ptr, tiles, total)
        index = chunk.allocate(4 * rows, "listing rows")
        positions = chunk.allocate(4 * rows, "listing rows")
        offsets = chunk.allocate(8 * each * rows, "listing rows")
        chunk.launch(
            "scan_select",
            "scan_positions",
            *(marked.mask.ptr, sums.ptr, tiles, index.ptr),
            items=tiles,
            of_a_block=WARPS,
        )
        chunk.launch(
            "scan_select",
            "scan_pick",
            *(self.selection.positions.ptr, index.ptr, total.address, positions.ptr),
            items=rows,
        )
        launcher = chunk.state.launcher
        launcher.start(
            launcher.kernel(_FILE, "scan_packed_pick", value_define(self.kind)),
            *(marked.offsets.ptr, index.ptr, total.address, each, offsets.ptr),
            grid=launcher.grid(each * rows),
            stream=chunk.state.stream,
        )
        return RowList(positions.ptr, rows, total, offsets.ptr), index

    def _launch(self, name: str, *arguments: Any) -> None:
        chunk, rows = self.chunk, self.selection.rows
        places = chunk.file_places(self.name, "values", chunk.state.fetch_rings)
        packed = pack_rows(chunk, self.name, places, self.selection)
        launcher = chunk.state.launcher
        launcher.start(
            launcher.kernel(_FILE, name, value_define(self.kind)),
            *(packed, *arguments),
            grid=launcher.grid(rows),
            stream=chunk.state.stream,
        )
