"""Single rows out of files in the page cache that are pinned: the GPU loads them itself, without commands.

A drive is asked for blocks; memory across the bus has sectors of 32 bytes, and nobody else has to move them.
What is read is counted in blocks all the same, so that figures of both ways can be compared.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory, NullStates
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.columns.device_columns import DeviceColumn, row_bits
from bamquery.engine.cuda.scan.reads.fetch_blocks import FetchedColumn
from bamquery.engine.cuda.scan.reads.gather_rows import pack_validity, pad_size
from bamquery.engine.cuda.scan.reads.packed_rows import pack_rows, value_define
from bamquery.engine.cuda.scan.resources.counter_board import Slot

_ITEMS: Final = struct.Struct("<QQQQQIIII")
"""ScanItems."""
_MAPPED: Final = struct.Struct("<QQQ")
"""What ScanMapped has behind its items."""


class MappedRows:
    """Columns whose selected rows are loaded, plain ones by one kernel.

    Attributes:
        names: of those columns.
    """

    def __init__(self, chunk: ChunkMemory, selection: Selection) -> None:
        self._chunk = chunk
        self._selection = selection
        self.names: list[str] = []
        self._jobs: list[bytes] = []
        self._columns: list[FetchedColumn] = []

    def add(self, name: str, bits: int, nulls: NullStates | None) -> FetchedColumn:
        """Load a plain column, too."""
        chunk, rows = self._chunk, self._selection.rows
        data = chunk.allocate(pad_size(rows * row_bits(bits) // 8), f'fetching column "{name}"')
        fetched = FetchedColumn(data)
        self._add_job(fetched, name, "values", bits, data.ptr, 0)
        self.names.append(name)
        if nulls is not None:
            fetched.valid = chunk.allocate(rows, "reading nulls")
            chunk.launch(
                "scan_gather",
                "scan_valid_by_vector",
                *(nulls.address, self._selection.positions.ptr, rows, fetched.valid.ptr),
                items=rows,
            )
            if (nulls.states == 1).any():
                self._add_job(fetched, name, "validity", 1, fetched.valid.ptr, nulls.address)
        self._columns.append(fetched)
        return fetched

    def start(self) -> Callable[[], float] | None:
        """Start the kernel; the result, called once it has ended, is how long it ran."""
        if not self._jobs:
            return None
        chunk, rows = self._chunk, self._selection.rows
        jobs = chunk.uploads.put(b"".join(self._jobs), chunk.state.stream)
        clock = chunk.clock(chunk.state.stream)
        chunk.launch("scan_fetch_mapped", "scan_fetch_mapped", jobs, len(self._jobs), items=rows)
        clock.end()
        for fetched in self._columns:
            if fetched.valid is not None:
                fetched.validity = pack_validity(chunk, fetched.valid, rows)
        return clock.seconds

    def _add_job(  # noqa: PLR0917 - a ScanMapped's fields
        self, fetched: FetchedColumn, name: str, buffer: str, bits: int, target: int, nulls: int
    ) -> None:
        chunk = self._chunk
        places = chunk.places(name, buffer, None, chunk.state.stream)
        tally = chunk.board.tally()
        fetched.tallies.append(tally)
        where = (self._selection.positions.ptr, self._selection.count.address, chunk.vectors, places, 0)
        items = _ITEMS.pack(*where, bits, chunk.state.block_bytes, 0, 0)
        self._jobs.append(items + _MAPPED.pack(nulls, target, tally.address))


def load_packed_rows(
    chunk: ChunkMemory, name: str, kind: pa.DataType, selection: Selection
) -> tuple[DeviceColumn, Slot, Callable[[], float]]:
    """Start to load the selection's rows of a packed column of `kind`; their tally, and how long it took."""
    rows, bits = selection.rows, row_bits(chunk.buffers(name)[0].bits)
    data = chunk.allocate(pad_size(rows * bits // 8), f'fetching column "{name}"')
    valid = None if chunk.nulls(name) is None else chunk.allocate(rows, "reading nulls")
    tally = chunk.board.tally()
    places = chunk.places(name, "values", None, chunk.state.stream)
    packed = pack_rows(chunk, name, places, selection)
    clock = chunk.clock(chunk.state.stream)
    launcher = chunk.state.launcher
    launcher.start(
        launcher.kernel("packed/mapped", "scan_packed_mapped", value_define(kind)),
        *(packed, data.ptr, None if valid is None else valid.ptr, tally.address),
        grid=launcher.grid(rows),
        stream=chunk.state.stream,
    )
    clock.end()
    found = DeviceColumn(kind, bits, rows, data)
    if valid is not None:
        found.validity, found.nulls = pack_validity(chunk, valid, rows)
    return found, tally, clock.seconds
