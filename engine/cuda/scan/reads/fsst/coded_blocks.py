"""Rows of compressed strings out of single blocks: where their codes are first, then the codes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import rmm

from bamquery.engine.cuda.scan.chunk.chunk_memory import WARPS, ChunkMemory
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.reads.accounting import ColumnRead
from bamquery.engine.cuda.scan.reads.fetch_blocks import FetchedColumn, Fetches
from bamquery.engine.cuda.scan.reads.fsst.decode import Codes, DecodedStrings, ends_check
from bamquery.engine.cuda.scan.reads.gather_rows import pack_validity
from bamquery.engine.cuda.scan.reads.marked_rows import MarkedRows
from bamquery.engine.cuda.scan.reads.string_blocks import BlockStrings
from bamquery.engine.cuda.scan.reads.string_reads import StringOffsets
from bamquery.storage.format.layout import VECTOR_ROWS

_FILE: Final = "fsst/blocks"
_ENDS: Final = 2
"""Power of two: items of a row, two of the code before its own, and two of its own."""


@dataclass
class CodedBlocks:
    """A column of compressed strings of which blocks are fetched: `start`, then `finish`.

    Attributes:
        fetched: what its commands for ends took.
    """

    chunk: ChunkMemory
    name: str
    kind: pa.DataType
    selection: Selection
    fetched: FetchedColumn = field(init=False)
    _offsets: rmm.DeviceBuffer = field(init=False)
    _words: rmm.DeviceBuffer = field(init=False)

    def start(self, fetches: Fetches) -> None:
        """Have the blocks fetched that hold the codes of ends."""
        chunk, rows = self.chunk, self.selection.rows
        self.fetched = FetchedColumn(chunk.allocate(16 * rows, f'fetching column "{self.name}"'))
        marked = MarkedRows.allocate(chunk, rows, 1 << _ENDS)
        self._offsets = marked.offsets
        chunk.launch(
            *(_FILE, "scan_fsst_items", self._pack()),
            *(marked.offsets.ptr, marked.mask.ptr, marked.counts.ptr),
            items=-(-rows // VECTOR_ROWS),
            of_a_block=WARPS,
        )
        listed, index = marked.list_rows(chunk, self.selection)
        self._words = chunk.allocate(8 * (rows << _ENDS), "fetching ends")
        fetches.add_words(self.fetched, self.name, listed, index, self._words, _ENDS)

    def finish(self, read: ColumnRead, checks: list[Any]) -> CodedBlockStrings:
        """Once ends are there: start to find out which blocks hold the rows' codes."""
        chunk, rows = self.chunk, self.selection.rows
        valid = None
        if chunk.nulls(self.name) is not None:
            valid = chunk.allocate(rows, "reading nulls")
        bad = chunk.board.take(4)
        chunk.launch(
            *(_FILE, "scan_fsst_pairs", self._pack(), self._offsets.ptr, self._words.ptr),
            *(self.fetched.data.ptr, None if valid is None else valid.ptr, bad.address),
            items=rows,
        )
        checks.append(ends_check(self.name, bad))
        for used in (self._offsets, self._words):
            chunk.release(used)
        validity = None if valid is None else pack_validity(chunk, valid, rows)
        offsets = StringOffsets(pairs=self.fetched.data)
        strings = offsets.pack(chunk, self.name, self.selection)
        found = CodedBlockStrings(
            *(self.name, self.kind, self.selection, read, offsets, strings, validity, checks)
        )
        found.start(chunk)
        return found

    def _pack(self) -> bytes:
        return Codes(StringOffsets(pairs=self.fetched.data)).pack(self.chunk, self.name, self.selection)


@dataclass
class CodedBlockStrings(BlockStrings):
    """Strings whose codes are fetched as the bytes of plain ones are, and then decoded."""

    def complete(self, chunk: ChunkMemory) -> DecodedStrings:
        """Start to decode, once the kernel that reads the blocks was started."""
        assert self.offsets.pairs is not None
        memory = (self.offsets.pairs, self.bases, self.memory)
        codes = Codes(self.offsets, bases=self.bases, blocks=self.memory, memory=memory)
        return DecodedStrings.start(
            *(chunk, self.name, self.kind, self.selection, self.read, codes, self.validity, self.checks)
        )
