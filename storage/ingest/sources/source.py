"""What ingest reads: readers (one file, one frame, one stream) behind one source with one schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa

from bamquery.storage.format.storable_types import DataType

BATCH_ROWS: Final = 1 << 17
"""Most rows of a batch. Enough to keep per-batch costs out of sight, and few megabytes a column."""

BATCH_BYTES: Final = 32 << 20
"""Sources whose rows are wide make batches of fewer rows, so that about this many bytes are in flight."""


class IngestSource(Protocol):
    """Rows from outside, of one schema, whatever they come from."""

    @property
    def name(self) -> str:
        """As the user gave it: a path, a pattern or the kind of a Python object."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """Columns as they would be stored: types normalised, many files unified."""
        ...

    @property
    def total_rows(self) -> int | None:
        """Rows of one pass, where known beforehand."""
        ...

    @property
    def total_bytes(self) -> int | None:
        """Size of what is read (files: as on disk, compressed), where known beforehand."""
        ...

    def totals(self, files: Sequence[int] | None = None) -> tuple[int | None, int | None]:
        """`total_rows` and `total_bytes` of these files, by number."""
        ...

    @property
    def bytes_read(self) -> int:
        """How much of `total_bytes` the batches of the latest pass stand for so far."""
        ...

    @property
    def drift(self) -> Sequence[str]:
        """How single files differ from `schema`, one sentence each; empty for a source that is of a piece."""
        ...

    @property
    def virtual_columns(self) -> Sequence[str]:
        """Names of columns that say which file a row is from, or where it is in it; they come last."""
        ...

    @property
    def hidden_columns(self) -> Sequence[str]:
        """Names of such columns for who names them only, behind those."""
        ...

    @property
    def file_count(self) -> int:
        """How many files there are; 1 for what is no file."""
        ...

    @property
    def file_columns(self) -> Sequence[int]:
        """Positions of columns that have one value in all rows of a file, which is known beforehand."""
        ...

    def file_values(self, columns: Sequence[int]) -> pa.RecordBatch:
        """The values of some of these columns, a row a file."""
        ...

    def batches(
        self,
        columns: Sequence[str] | None = None,
        files: Sequence[int] | None = None,
        batch_bytes: int = BATCH_BYTES,
    ) -> Iterator[pa.RecordBatch]:
        """One pass over the rows, in order: batches of `schema`, or of `columns` of it in that order.

        `files` are those to read, by number; None for all. The others are not opened.

        Batches have at most `BATCH_ROWS` rows, and where these are wide about `batch_bytes`, which is
        `BATCH_BYTES` or less; few of them are in memory at a time. Columns that are not named are not read
        where the format allows that.

        Raises:
            IngestError: something cannot be read or does not fit; names the file, the place in it and the
                column. Also on a second pass over a stream that can be consumed only once.
        """
        ...

    def deferred_batches(
        self,
        columns: Sequence[str] | None = None,
        files: Sequence[int] | None = None,
        batch_bytes: int = BATCH_BYTES,
    ) -> Iterator[DeferredBatch]:
        """As `batches`, for several threads: each batch is read or converted by the one that loads it.

        `bytes_read` counts nothing of them.
        """
        ...


@dataclass(frozen=True, slots=True)
class DeferredBatch:
    """A batch of a source, which need not be read yet.

    Attributes:
        rows: how many it has.
        bytes: how much of the source's size it stands for.
        load: gives it, once, or raises what `IngestSource.batches` does; by any thread, and threads may load
            several batches at the same time.
    """

    rows: int
    bytes: int
    load: Callable[[], pa.RecordBatch]


def readable(schema: pa.Schema) -> pa.Schema:
    """The schema itself, if its names and types can be looked at: those of a damaged file may not be text.

    Raises:
        ValueError: they cannot.
    """
    for field in schema:
        str((field.name, field.type))
    return schema


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a reader, as it has them."""

    batch: pa.RecordBatch
    place: str
    """Where in the reader the rows are, for messages: "row group 3", "lines 10 to 2000"; may be empty."""
    first_row: int
    """Number of the first row within that place, from 1."""
    bytes: int
    """How much of the reader's size this chunk accounts for."""
    group: int = 0
    """Of a Parquet file: number of the row group, from 0."""


class SourceReader(Protocol):
    """One file, frame or stream, with the names and types it has itself."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def path(self) -> Path | None:
        """The file, if it is one."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """Its columns before anything is normalised or left out."""
        ...

    @property
    def rows(self) -> int | None:
        """Where known."""
        ...

    @property
    def bytes(self) -> int | None:
        """Where known."""
        ...

    @property
    def is_text(self) -> bool:
        """True where the types are only a reading of text, so that any column can be had as strings too."""
        ...

    def read(
        self, columns: Sequence[int], types: Sequence[DataType], batch_bytes: int = BATCH_BYTES
    ) -> Iterator[Chunk]:
        """Chunks with the columns at these positions of `schema`, in that order.

        `types` are those wanted in the end, for readers that can read different things; others ignore them.
        Rows that are wide come so many that they take about `batch_bytes`; readers of what comes in small
        pieces, or is in memory already, take it as it comes.

        Raises:
            IngestError: names the reader, the place and the column.
        """
        ...
