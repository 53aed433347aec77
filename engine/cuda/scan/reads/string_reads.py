"""Strings of a selection: their offsets are read first, then the host learns their size, then their bytes.

Offsets come by any strategy. What they tell is worked out on the GPU: lengths, where each string goes in the
column, and which blocks, or which bytes of whole vectors, are to be read. Those land one after the other in
memory of their own, out of which a kernel copies the strings end to end.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import rmm

from bamquery.engine.cuda.launcher import SCAN_THREADS
from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.columns.device_columns import DeviceStrings
from bamquery.engine.cuda.scan.reads.accounting import ColumnRead
from bamquery.engine.cuda.scan.reads.gather_rows import pad_size
from bamquery.engine.cuda.scan.resources.counter_board import Slot
from bamquery.storage.format.layout import Extent

_TILE: Final = 1024
"""Rows that are added up together."""
_SEGMENT: Final = 4096
"""Bytes that a thread block of scan_string_bytes writes at a time."""
_STRINGS: Final = struct.Struct("<QQQQQQQIIII")
"""ScanStrings."""
_NARROW: Final = 2**31 - 1
"""Bytes that offsets of 32 bits can count."""


@dataclass(frozen=True)
class StringOffsets:
    """Where kernels find the offsets of a selection's rows: ScanStrings of strings/scan_strings.hpp.

    Attributes:
        pairs: two of each row; None: whole vectors have them.
        vectors: these vectors.
        slots: where each of them is, as words on the GPU, in units of `unit` bytes.
    """

    pairs: rmm.DeviceBuffer | None = None
    vectors: rmm.DeviceBuffer | None = None
    slots: int = 0
    unit: int = 0

    def pack(self, chunk: ChunkMemory, name: str, selection: Selection | None) -> bytes:
        """The ScanStrings; without a selection, of vectors only."""
        state, stream = chunk.state, chunk.state.stream
        # Vectors' bytes are loaded by requests of their own.
        places = 0 if self.pairs is None else chunk.file_places(name, "values", state.fetch_rings)
        sizes = [0 if extent is None else extent.length for extent in chunk.extents(name, "values")]
        return _STRINGS.pack(
            *(0 if buffer is None else buffer.ptr for buffer in (self.pairs, self.vectors)),
            *(self.slots, 0 if selection is None else selection.positions.ptr, chunk.vectors, places),
            chunk.upload_by_fragment(np.array(sizes, np.uint64), stream),
            *(0 if selection is None else selection.rows, self.unit, state.block_bytes, chunk.rows.count),
        )


class WaitingStrings(ABC):
    """A column of strings of which the host must first know something."""

    @abstractmethod
    def complete(self, chunk: ChunkMemory) -> DeviceStrings | WaitingStrings:
        """Go on, once all that was started before has ended: the column, or what it waits for next.

        Raises:
            StorageError: the file cannot be read, or is not what was written.
            MemoryLimitError: there is too little memory for it.
        """
        ...


@dataclass
class StringRead(WaitingStrings):
    """A column of strings whose offsets are on their way.

    Attributes:
        name: of the column.
        kind: its type.
        selection: the rows.
        read: what it is accounted for in.
        offsets: where these are.
        strings: the ScanStrings.
        validity: its bitmap and the word with the number of nulls; None: no row is null.
        sums: bytes of the strings before each row, and of all.
        total: the two words with the bytes of all.
    """

    name: str
    kind: pa.DataType
    selection: Selection
    read: ColumnRead
    offsets: StringOffsets
    strings: bytes
    validity: tuple[rmm.DeviceBuffer, Slot] | None
    sums: rmm.DeviceBuffer = field(init=False)
    total: Slot = field(init=False)

    def measure(self, chunk: ChunkMemory, ranges: int | None, bad: Slot) -> None:
        """Start to add up the lengths; `ranges` are those of vectors, on the GPU, where they are known."""
        rows = self.selection.rows
        self.sums, self.total = running_sums(
            chunk, "scan_string_lengths", rows, (self.strings, ranges), (bad.address,)
        )

    def size(self, chunk: ChunkMemory) -> int:
        """Bytes of the strings, once the board was copied back."""
        return wide_word(chunk, self.total)

    def gather(
        self, chunk: ChunkMemory, bases: rmm.DeviceBuffer | None, memory: rmm.DeviceBuffer, places: int
    ) -> DeviceStrings:
        """The column, out of what was read to `memory`; see scan_string_bytes."""
        rows, size = self.selection.rows, self.size(chunk)
        self.read.string_bytes = size
        data = chunk.allocate(pad_size(size), f'reading column "{self.name}"')
        if size:
            chunk.launch(
                "strings/bytes",
                "scan_string_bytes",
                *(self.strings, self.sums.ptr, None if bases is None else bases.ptr, memory.ptr),
                *(places, data.ptr),
                items=-(-size // _SEGMENT),
                of_a_block=1,
            )
        for used in (memory, bases, self.offsets.pairs, self.offsets.vectors):
            if used is not None:
                chunk.release(used)
        return string_column(chunk, self.name, self.kind, data, rows, self.sums, size, self.validity)


def string_column(  # noqa: PLR0917 - a column's parts
    chunk: ChunkMemory,
    name: str,
    kind: pa.DataType,
    data: rmm.DeviceBuffer,
    rows: int,
    sums: rmm.DeviceBuffer,
    size: int,
    validity: tuple[rmm.DeviceBuffer, Slot] | None,
) -> DeviceStrings:
    """Of strings that `data` has end to end, `size` bytes; `sums` of their lengths become offsets."""
    offsets, width = sums, 8
    if size <= _NARROW:
        offsets, width = chunk.allocate(4 * (rows + 1), f'reading column "{name}"'), 4
        chunk.launch(
            "strings/offsets",
            "scan_string_offsets",
            *(sums.ptr, rows + 1, offsets.ptr),
            items=rows + 1,
        )
        chunk.release(sums)
    column = DeviceStrings(kind, rows, data, offsets, width)
    if validity is not None:
        column.validity, column.nulls = validity
    return column


def running_sums(
    chunk: ChunkMemory,
    kernel: str,
    rows: int,
    before: Sequence[object],
    behind: Sequence[object] = (),
    *,
    file: str = "strings/offsets",
) -> tuple[rmm.DeviceBuffer, Slot]:
    """Start to count with a kernel of `file`, and to add up what it counts for rows before each row.

    Args:
        chunk: whose rows they are.
        kernel: counts for each row and for each tile; these are its arguments between `before` and `behind`.
        rows: how many.
        before: its first arguments.
        behind: its last.
        file: where it is.

    Returns:
        The sums, that of all behind the last, and the two words that get that, too.
    """
    tiles = -(-rows // _TILE)
    sums = chunk.allocate(8 * (rows + 1), "adding up the lengths of strings")
    of_tiles = chunk.allocate(8 * tiles, "adding up the lengths of strings")
    total = chunk.board.take(8)
    counted = (*before, sums.ptr, of_tiles.ptr, *behind)
    chunk.launch(file, kernel, *counted, items=tiles, of_a_block=1)
    launcher = chunk.state.launcher
    launcher.start(
        launcher.kernel("strings/offsets", "scan_string_tiles"),
        *(of_tiles.ptr, tiles, total.address),
        grid=1,
        block=SCAN_THREADS,
        stream=chunk.state.stream,
    )
    added = (sums.ptr, rows, of_tiles.ptr, total.address)
    chunk.launch("strings/offsets", "scan_string_sums", *added, items=tiles, of_a_block=1)
    chunk.release(of_tiles)
    return sums, total


def wide_word(chunk: ChunkMemory, slot: Slot) -> int:
    """A number of 64 bits, once the board was copied back."""
    low, high = chunk.board.words(slot, 2).tolist()
    return int(low) | int(high) << 32


def row_bytes(extents: Sequence[Extent | None], rows: Sequence[int]) -> float:
    """Of a string, on average over fragments of so many rows."""
    total = sum(extent.length for extent in extents if extent is not None)
    return total / max(sum(rows), 1)
