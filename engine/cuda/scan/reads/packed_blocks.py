"""Rows of packed columns out of single blocks: their codes first, and what these ask for besides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import rmm

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.columns.device_columns import DeviceColumn, row_bits
from bamquery.engine.cuda.scan.reads.fetch_blocks import FetchedColumn, Fetches, RowList
from bamquery.engine.cuda.scan.reads.gather_rows import pack_validity, pad_size
from bamquery.engine.cuda.scan.reads.marked_rows import MarkedRows
from bamquery.engine.cuda.scan.reads.packed_rows import pack_rows, value_define

_FILE: Final = "packed/blocks"


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
        marked = MarkedRows.allocate(chunk, rows, 2)
        self._offsets = marked.offsets
        self._launch("scan_packed_items", marked.offsets.ptr, marked.mask.ptr, marked.counts.ptr)
        listed, index = marked.list_rows(chunk, self.selection)
        self._words = chunk.allocate(16 * rows, "fetching codes")
        fetches.add_words(self.fetched, self.name, listed, index, self._words, 1)

    def decode(self, fetches: Fetches) -> None:
        """Once the codes are there: find the values, and have fetched what is behind codes."""
        chunk = self.chunk
        if chunk.nulls(self.name) is not None:
            self._valid = chunk.allocate(self.selection.rows, "reading nulls")
        marked = MarkedRows.allocate(chunk, self.selection.rows, 1)
        self._launch(
            "scan_packed_words",
            *(self._offsets.ptr, self._words.ptr, self.fetched.data.ptr, self._valid_address),
            *(marked.offsets.ptr, marked.mask.ptr, marked.counts.ptr),
        )
        if not any(payloads.has_more for payloads in chunk.payloads(self.name)):
            return
        listed, index = marked.list_rows(chunk, self.selection)
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

    def _launch(self, name: str, *arguments: Any) -> None:
        chunk, rows = self.chunk, self.selection.rows
        places = chunk.file_places(self.name, "values", chunk.state.fetch_rings)
        packed = pack_rows(chunk, self.name, places, self.selection, chunk.state.block_bytes)
        launcher = chunk.state.launcher
        launcher.start(
            launcher.kernel(_FILE, name, value_define(self.kind)),
            *(packed, *arguments),
            grid=launcher.grid(rows),
            stream=chunk.state.stream,
        )
