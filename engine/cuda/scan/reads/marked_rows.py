"""Rows of a selection that a kernel marks: only of these something is fetched."""

from __future__ import annotations

from dataclasses import dataclass

import rmm

from bamquery.engine.cuda.scan.chunk.chunk_memory import WARPS, ChunkMemory
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.reads.fetch_blocks import RowList
from bamquery.storage.format.layout import VECTOR_ROWS


@dataclass(frozen=True)
class MarkedRows:
    """What a kernel writes of rows: engine/kernels/scan_marked.hpp.

    Attributes:
        each: items of a row.
        mask: a bit for each row, whether it is marked.
        counts: how many are of each 1,024.
        offsets: of all rows' items, as `RowList` has them.
    """

    each: int
    mask: rmm.DeviceBuffer
    counts: rmm.DeviceBuffer
    offsets: rmm.DeviceBuffer

    @classmethod
    def allocate(cls, chunk: ChunkMemory, rows: int, each: int) -> MarkedRows:
        """Room for so many rows."""
        tiles = -(-rows // VECTOR_ROWS)
        return cls(
            each,
            chunk.allocate(tiles * VECTOR_ROWS // 8, "listing rows"),
            chunk.allocate(4 * tiles, "listing rows"),
            chunk.allocate(8 * each * rows, "listing rows"),
        )

    def list_rows(self, chunk: ChunkMemory, selection: Selection) -> tuple[RowList, rmm.DeviceBuffer]:
        """Once it was written: the marked rows with their items' offsets, and their numbers among all."""
        rows = selection.rows
        tiles = -(-rows // VECTOR_ROWS)
        total = chunk.board.take(4)
        sums = chunk.prefix_sums(self.counts.ptr, tiles, total)
        index = chunk.allocate(4 * rows, "listing rows")
        positions = chunk.allocate(4 * rows, "listing rows")
        offsets = chunk.allocate(8 * self.each * rows, "listing rows")
        chunk.launch(
            "scan_select",
            "scan_positions",
            *(self.mask.ptr, sums.ptr, tiles, index.ptr),
            items=tiles,
            of_a_block=WARPS,
        )
        chunk.launch(
            "scan_select",
            "scan_pick",
            *(selection.positions.ptr, index.ptr, total.address, positions.ptr),
            items=rows,
        )
        chunk.launch(
            "scan_select",
            "scan_pick_offsets",
            *(self.offsets.ptr, index.ptr, total.address, self.each, offsets.ptr),
            items=self.each * rows,
        )
        return RowList(positions.ptr, rows, total, offsets.ptr), index
