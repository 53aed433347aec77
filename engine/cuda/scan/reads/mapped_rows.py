"""Single rows out of files in the page cache that are pinned: the GPU loads them itself, without commands.

A drive is asked for blocks; memory across the bus has sectors of 32 bytes, and nobody else has to move them.
So these are counted, as what crosses the bus.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import rmm

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory, NullStates
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.columns.device_columns import DeviceColumn, row_bits
from bamquery.engine.cuda.scan.reads.accounting import SECTOR_BYTES
from bamquery.engine.cuda.scan.reads.fetch_blocks import FetchedColumn
from bamquery.engine.cuda.scan.reads.gather_rows import pack_validity, pad_size
from bamquery.engine.cuda.scan.reads.packed_rows import pack_rows, value_define
from bamquery.engine.cuda.scan.resources.counter_board import Slot

_ITEMS: Final = struct.Struct("<QQQQQIIII")
"""ScanItems."""
_MAPPED: Final = struct.Struct("<QQQ")
"""What ScanMapped has behind its items."""
_PACKED_MAPPED: Final = struct.Struct("<QQQ")
"""What PackedMapped has behind its rows."""


@dataclass
class PackedRows:
    """A packed column whose rows are loaded.

    Attributes:
        column: without nulls.
        tally: what the kernel counts.
        valid: a byte for each row, where there may be nulls.
        validity: the same as bits, and how many are none, once the kernel was started.
    """

    column: DeviceColumn
    tally: Slot
    valid: rmm.DeviceBuffer | None
    validity: tuple[rmm.DeviceBuffer, Slot] | None = None

    def finish(self) -> DeviceColumn:
        """The column, once the kernel was started."""
        if self.validity is not None:
            self.column.validity, self.column.nulls = self.validity
        return self.column


class MappedRows:
    """Columns whose selected rows are loaded: plain ones by one kernel, packed ones by one for each type.

    Attributes:
        names: of those columns.
    """

    def __init__(self, chunk: ChunkMemory, selection: Selection) -> None:
        self._chunk = chunk
        self._selection = selection
        self.names: list[str] = []
        self._jobs: list[bytes] = []
        self._packed_jobs: dict[str, list[bytes]] = {}
        self._columns: list[FetchedColumn | PackedRows] = []

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

    def add_packed(self, name: str, kind: pa.DataType) -> PackedRows:
        """Load a packed column of `kind`, too."""
        chunk, rows = self._chunk, self._selection.rows
        bits = row_bits(chunk.buffers(name)[0].bits)
        data = chunk.allocate(pad_size(rows * bits // 8), f'fetching column "{name}"')
        valid = None if chunk.nulls(name) is None else chunk.allocate(rows, "reading nulls")
        found = PackedRows(DeviceColumn(kind, bits, rows, data), chunk.board.tally(), valid)
        places = chunk.places(name, "values", None, chunk.state.stream)
        job = pack_rows(chunk, name, places, self._selection, SECTOR_BYTES) + _PACKED_MAPPED.pack(
            data.ptr, 0 if valid is None else valid.ptr, found.tally.address
        )
        self._packed_jobs.setdefault(value_define(kind), []).append(job)
        self.names.append(name)
        self._columns.append(found)
        return found

    def start(self) -> Callable[[], float] | None:
        """Start the kernels; the result, called once they have ended, is how long they ran."""
        if not self.names:
            return None
        chunk, rows = self._chunk, self._selection.rows
        launcher, stream = chunk.state.launcher, chunk.state.stream
        plain = chunk.uploads.put(b"".join(self._jobs), stream) if self._jobs else 0
        packed = {
            define: chunk.uploads.put(b"".join(jobs), stream) for define, jobs in self._packed_jobs.items()
        }
        clock = chunk.clock(stream)
        if plain:
            chunk.launch("fetch/mapped", "scan_fetch_mapped", plain, len(self._jobs), items=rows)
        for define, address in packed.items():
            count = len(self._packed_jobs[define])
            launcher.start(
                launcher.kernel("packed/mapped", "scan_packed_mapped", define),
                *(address, count),
                grid=count * launcher.grid(rows),
                stream=stream,
            )
        clock.end()
        for one in self._columns:
            if one.valid is not None:
                one.validity = pack_validity(chunk, one.valid, rows)
        return clock.seconds

    def _add_job(  # noqa: PLR0917 - a ScanMapped's fields
        self, fetched: FetchedColumn, name: str, buffer: str, bits: int, target: int, nulls: int
    ) -> None:
        chunk = self._chunk
        places = chunk.places(name, buffer, None, chunk.state.stream)
        tally = chunk.board.tally()
        fetched.tallies.append(tally)
        where = (self._selection.positions.ptr, self._selection.count.address, chunk.vectors, places, 0)
        items = _ITEMS.pack(*where, bits, SECTOR_BYTES, 0, 0)
        self._jobs.append(items + _MAPPED.pack(nulls, target, tally.address))
