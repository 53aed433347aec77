"""Chunks of a reader that other threads read: what comes before them is known without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa

from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.sources.source import Chunk, SourceReader


@dataclass(frozen=True, slots=True)
class DeferredChunk:
    """Rows that are read, or converted, by the thread that calls `load`.

    Attributes:
        rows: how many.
        bytes: how much of the reader's size they account for.
        load: gives them, once; threads may load several chunks at the same time.
    """

    rows: int
    bytes: int
    load: Callable[[], Chunk]

    def map(self, function: Callable[[Chunk], pa.RecordBatch]) -> DeferredChunk:
        """The same rows with the columns that the function makes of theirs."""

        def load() -> Chunk:
            chunk = self.load()
            return Chunk(function(chunk), chunk.place, chunk.first_row, chunk.bytes, chunk.group)

        return DeferredChunk(self.rows, self.bytes, load)


@runtime_checkable
class DeferringReader(Protocol):
    """A reader whose chunks can be read by several threads at once."""

    def read_deferred(
        self, columns: Sequence[int], types: Sequence[DataType], batch_bytes: int
    ) -> Iterator[DeferredChunk]:
        """As `SourceReader.read`; whoever loads a chunk gets the error that reading it meets."""
        ...


def deferred_chunks(
    reader: SourceReader, columns: Sequence[int], types: Sequence[DataType], batch_bytes: int
) -> Iterator[DeferredChunk]:
    """The reader's chunks in order; of a reader that cannot defer they are read by who asks for the next."""
    if isinstance(reader, DeferringReader):
        yield from reader.read_deferred(columns, types, batch_bytes)
        return
    for chunk in reader.read(columns, types, batch_bytes):
        yield known_chunk(chunk)


def known_chunk(chunk: Chunk) -> DeferredChunk:
    """One that has been read."""
    return DeferredChunk(chunk.batch.num_rows, chunk.bytes, lambda: chunk)
