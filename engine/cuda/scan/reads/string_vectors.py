"""Strings out of whole vectors: all of a chunk's, or those that were picked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import rmm
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.columns.device_columns import DeviceStrings
from bamquery.engine.cuda.scan.kernel_tables.string_requests import byte_runs, offset_runs
from bamquery.engine.cuda.scan.reads.accounting import ColumnRead, KernelTime
from bamquery.engine.cuda.scan.reads.load_vectors import LoadedVectors, load_requests
from bamquery.engine.cuda.scan.reads.string_checks import check_strings, offsets_check
from bamquery.engine.cuda.scan.reads.string_reads import StringOffsets, StringRead
from bamquery.engine.cuda.scan.reads.vector_check import VectorCheck
from bamquery.engine.cuda.scan.resources.counter_board import Slot
from bamquery.engine.cuda.scan.resources.host_blocks import HostBlock


@dataclass(frozen=True)
class LoadedOffsets:
    """Offsets of whole vectors.

    Attributes:
        loaded: how they came; None where kernels that pick vectors brought them.
        offsets: where they are.
        used: which vectors they are of, as words on the GPU; None: all.
    """

    loaded: LoadedVectors | None
    offsets: StringOffsets
    used: int | None


def load_offsets(
    chunk: ChunkMemory, name: str, stream: Any, wanted: NDArray[np.bool_] | None
) -> LoadedOffsets:
    """Start to load the offsets of the chunk's vectors, or of those that are `wanted`."""
    runs = offset_runs(chunk.rows, chunk.extents(name, "offsets"), wanted)
    memory = chunk.allocate(runs.size, f'streaming column "{name}"')
    loaded = load_requests(chunk, name, "offsets", runs.requests, memory, stream)
    slots = chunk.uploads.put(runs.places, stream)
    used = None if wanted is None else chunk.uploads.put(wanted.astype(np.uint32), stream)
    return LoadedOffsets(loaded, StringOffsets(vectors=memory, slots=slots, unit=16), used)


@dataclass
class VectorStrings(StringRead):
    """A column of strings whose vectors' offsets were loaded.

    Attributes:
        used: as LoadedOffsets'.
        kernels: gets what drives queue pairs.
        checks: gets the check of bytes.
    """

    used: int | None
    kernels: list[KernelTime]
    checks: list[Any]
    _ranges: rmm.DeviceBuffer = field(init=False)
    _copied: HostBlock = field(init=False)
    _check: VectorCheck = field(init=False)

    def start(self, chunk: ChunkMemory) -> None:
        """Start to find out which bytes are to be read."""
        count = chunk.rows.count
        bad = chunk.board.take(4)
        self._ranges = chunk.allocate(16 * count, "reading offsets")
        chunk.launch(
            "strings/offsets",
            "scan_string_ranges",
            *(self.strings, self.used, chunk.vector_rows, self._ranges.ptr, bad.address),
            items=count,
        )
        self.measure(chunk, self._ranges.ptr, bad)
        self._check = offsets_check(self.name, bad)
        self.checks.append(self._check)
        state = chunk.state
        self._copied = chunk.uploads.borrow(16 * count)
        what = (self._copied.host, self._ranges.ptr, 16 * count, state.stream)
        state.session.gpu.cuda("copy from the GPU", "cuMemcpyDtoHAsync", *what)

    def complete(self, chunk: ChunkMemory) -> DeviceStrings:
        """Read the runs of bytes that the vectors' offsets tell of."""
        state, count = chunk.state, chunk.rows.count
        ranges = self._copied.view(0, np.int64, 2 * count).reshape(-1, 2).copy()
        runs = byte_runs(chunk.rows, chunk.extents(self.name, "values"), ranges)
        if isinstance(runs, int):
            raise self._check.corrupt(chunk, runs)
        memory = chunk.allocate(runs.size, f'reading column "{self.name}"')
        loaded = load_requests(chunk, self.name, "values", runs.requests, memory, state.stream)
        self.read.counters += loaded.counters
        self.read.path = loaded.path
        if loaded.tally is not None:
            self.read.tallies.append(loaded.tally)
        if loaded.seconds is not None:
            self.kernels.append(KernelTime(loaded.seconds, (self.name,)))
        places = chunk.uploads.put(runs.places + np.uint64(memory.ptr), state.stream)
        if state.verifies:
            self.checks.append(
                check_strings(
                    *(chunk, self.name, "bytes", self.strings, self.used),
                    ranges=self._ranges.ptr,
                    places=places,
                )
            )
        column = self.gather(chunk, None, memory, places)
        chunk.release(self._ranges)
        return column


def vector_strings(  # noqa: PLR0917 - one read of one column
    chunk: ChunkMemory,
    name: str,
    kind: pa.DataType,
    selection: Selection,
    read: ColumnRead,
    found: LoadedOffsets,
    validity: tuple[rmm.DeviceBuffer, Slot] | None,
    kernels: list[KernelTime],
    checks: list[Any],
) -> VectorStrings:
    """Start to find out which bytes of vectors hold the selection's strings."""
    strings = found.offsets.pack(chunk, name, selection)
    started = VectorStrings(
        *(name, kind, selection, read, found.offsets, strings, validity, found.used, kernels, checks)
    )
    started.start(chunk)
    return started
