"""Whole vectors of compressed strings: all of a chunk's, or those that hold a selection's rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.chunk.row_selection import Selection
from bamquery.engine.cuda.scan.kernel_tables.string_requests import byte_runs, payload_bytes
from bamquery.engine.cuda.scan.reads.accounting import ColumnRead, KernelTime
from bamquery.engine.cuda.scan.reads.fetch_vectors import vectors_of_rows
from bamquery.engine.cuda.scan.reads.fsst.decode import Codes, DecodedStrings
from bamquery.engine.cuda.scan.reads.load_vectors import QUEUE_PAIRS, LoadedVectors, load_requests
from bamquery.engine.cuda.scan.reads.string_checks import check_strings
from bamquery.engine.cuda.scan.reads.string_reads import StringOffsets, WaitingStrings
from bamquery.engine.cuda.scan.reads.vector_check import VectorCheck
from bamquery.engine.cuda.scan.resources.host_blocks import HostBlock


@dataclass(frozen=True)
class CodedVectors:
    """Payloads of vectors, which were loaded.

    Attributes:
        loaded: how.
        shifts: of each vector on the GPU, what is added to a byte of the column for its address.
        ranges: bytes of the column that each vector's payload is; both 0 of those that were not wanted.
    """

    loaded: LoadedVectors
    shifts: int
    ranges: NDArray[np.int64]

    @property
    def codes(self) -> Codes:
        """Where strings are decoded from."""
        return Codes(StringOffsets(), self.shifts, memory=(self.loaded.memory,))

    def check(self, chunk: ChunkMemory, name: str, stream: Any) -> VectorCheck:
        """Start to compare them, which are there for `stream`, with their checksums."""
        used = (self.ranges[:, 1] > self.ranges[:, 0]).astype(np.uint32)
        return check_strings(
            *(chunk, name, "bytes", StringOffsets().pack(chunk, name, None)),
            None if used.all() else chunk.uploads.put(used, stream),
            ranges=chunk.uploads.put(self.ranges, stream),
            places=self.shifts,
            stream=stream,
        )


def load_coded_vectors(
    chunk: ChunkMemory, name: str, stream: Any, wanted: NDArray[np.bool_] | None
) -> CodedVectors:
    """Start to load the payloads of the chunk's vectors, or of those that are `wanted`.

    Raises:
        StorageError: a file is not there as it was written.
        MemoryLimitError: there is not enough memory.
    """
    ranges = payload_bytes(chunk.rows, chunk.payloads(name), wanted)
    runs = byte_runs(chunk.rows, chunk.extents(name, "values"), ranges)
    assert not isinstance(runs, int), "payloads that lie end to end overlap"
    memory = chunk.allocate(runs.size, f'streaming column "{name}"')
    loaded = load_requests(chunk, name, "values", runs.requests, memory, stream)
    looking = stream
    if stream is chunk.state.copy_stream:  # not in the way of the next copy
        looking = chunk.state.look_stream
        chunk.state.session.follow(looking, chunk.state.stream)
    shifts = chunk.uploads.put(runs.places + np.uint64(memory.ptr), looking)
    return CodedVectors(loaded, shifts, ranges)


@dataclass
class FetchedVectors(WaitingStrings):
    """Strings of a selection out of whole vectors: which these are is on its way to the host.

    Attributes:
        name: of the column.
        kind: its type.
        selection: the rows.
        read: what it is accounted for in.
        used: gets a word for each of the chunk's vectors, whether it holds one of the rows.
        kernels: gets what drives queue pairs.
        checks: gets those of what is read.
    """

    name: str
    kind: pa.DataType
    selection: Selection
    read: ColumnRead
    used: HostBlock
    kernels: list[KernelTime]
    checks: list[Any]

    @classmethod
    def start(  # noqa: PLR0917 - one read of one column
        cls,
        chunk: ChunkMemory,
        name: str,
        kind: pa.DataType,
        selection: Selection,
        read: ColumnRead,
        kernels: list[KernelTime],
        checks: list[Any],
    ) -> FetchedVectors:
        """Start to find out which vectors hold the selection's rows."""
        size = 4 * chunk.rows.count
        block = chunk.uploads.borrow(size)
        what = (block.host, vectors_of_rows(chunk, selection).ptr, size, chunk.state.stream)
        chunk.state.session.gpu.cuda("copy from the GPU", "cuMemcpyDtoHAsync", *what)
        return cls(name, kind, selection, read, block, kernels, checks)

    def complete(self, chunk: ChunkMemory) -> DecodedStrings:
        """Load them."""
        stream = chunk.state.stream
        wanted = self.used.view(0, np.uint32, chunk.rows.count) != 0
        vectors = load_coded_vectors(chunk, self.name, stream, wanted)
        account_for(self.read, self.name, vectors.loaded, self.kernels)
        if chunk.state.verifies:
            self.checks.append(vectors.check(chunk, self.name, stream))
        return DecodedStrings.start(
            *(chunk, self.name, self.kind, self.selection, self.read, vectors.codes, None, self.checks)
        )


def account_for(read: ColumnRead, name: str, loaded: LoadedVectors, kernels: list[KernelTime]) -> None:
    """Have what loading took counted."""
    read.path = loaded.path
    read.counters += loaded.counters
    if loaded.tally is not None:
        (read.tallies if loaded.path == QUEUE_PAIRS else read.copied).append(loaded.tally)
    if loaded.seconds is not None:
        kernels.append(KernelTime(loaded.seconds, (name,), loaded.path == QUEUE_PAIRS))
