"""Parquet files, a row group at a time and a row group a few pages at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from bamquery.errors import IngestError
from bamquery.storage.database.file_access import open_arrow
from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.parquet.dictionary_strings import long_strings, may_blow_up, small_slices
from bamquery.storage.ingest.parquet.footer import ColumnChunk, column_chunks
from bamquery.storage.ingest.parquet.logical_types import Reading, leaf_places, meant_types
from bamquery.storage.ingest.parquet.open_files import OpenFiles
from bamquery.storage.ingest.sources.deferred_chunks import DeferredChunk, known_chunk
from bamquery.storage.ingest.sources.failures import READ_ERRORS, unreadable
from bamquery.storage.ingest.sources.formats import read_start
from bamquery.storage.ingest.sources.source import BATCH_BYTES, BATCH_ROWS, Chunk, readable

_MAGIC: Final = b"PAR1"
_ENCRYPTED_MAGIC: Final = b"PARE"
_READ_BUFFER: Final = 1 << 20
_FEWEST_ROWS: Final = 1 << 10
_LONG_VALUE: Final = 1 << 10
"""Bytes."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Columns that are read.

    Attributes:
        names: of them, each once.
        strings: names of those that may come as dictionaries.
        columns: for each column its place in batches, and how its values are read where Arrow reads others.
            Columns come in the order of names; of several of one name all come, in the file's order.
    """

    names: list[str]
    strings: list[str]
    columns: list[tuple[int, Reading | None]]


@dataclass(frozen=True, slots=True)
class _Pass:
    """One pass over the rows.

    Attributes:
        files: the file, for any thread.
        wanted: columns.
        chunks: what the footer says of column chunks, of one row group after the other.
        batch_bytes: about what a batch should have.
    """

    files: OpenFiles
    wanted: _Wanted
    chunks: Iterator[list[ColumnChunk]]
    batch_bytes: int


class ParquetReader:
    """One Parquet file. INT96 timestamps are read in microseconds, as DuckDB and Spark do.

    Column chunks are read through a buffer instead of whole, so memory does not grow with row groups, and
    with plain reads instead of a mapping, so a file that is truncated meanwhile is an error.
    """

    is_text: Final = False

    def __init__(self, path: Path, name: str) -> None:
        """Read the footer.

        Raises:
            IngestError: not a Parquet file, or one whose footer is damaged.
        """
        self.path = path
        self.name = name
        start = read_start(path, len(_MAGIC))
        if start == _ENCRYPTED_MAGIC:
            raise IngestError("is an encrypted Parquet file, which BamQuery cannot decrypt", path)
        if start != _MAGIC:
            raise IngestError(f"is not a Parquet file: it starts with {start!r} instead of {_MAGIC!r}", path)
        try:
            self.bytes = path.stat().st_size
            with self._open() as file:
                schema = readable(file.schema_arrow)
                self._leaf_places = leaf_places(schema)
                self.schema, self._readings = meant_types(file, schema)
                self.rows: int = file.metadata.num_rows
                self._groups: int = file.metadata.num_row_groups
        except READ_ERRORS as error:
            raise unreadable(path, error, "footer (the file may be truncated)") from error

    def read(
        self, columns: Sequence[int], types: Sequence[DataType], batch_bytes: int = BATCH_BYTES
    ) -> Iterator[Chunk]:
        """See `SourceReader.read`; only the pages of these columns are read."""
        for chunk in self.read_deferred(columns, types, batch_bytes):
            yield chunk.load()

    def read_deferred(
        self, columns: Sequence[int], types: Sequence[DataType], batch_bytes: int = BATCH_BYTES
    ) -> Iterator[DeferredChunk]:
        """See `DeferringReader.read_deferred`: a row group that is a batch is read by whoever loads it."""
        wanted = self._wanted_leaves(columns, types)
        try:
            with OpenFiles(self.path, self._open) as files:
                own = _Pass(files, wanted, column_chunks(self.path), batch_bytes)
                for group in range(self._groups):
                    yield from self._read_group(own, group)
        except READ_ERRORS as error:
            raise unreadable(self.path, error) from error

    def _wanted_leaves(self, columns: Sequence[int], types: Sequence[DataType]) -> _Wanted:
        own = self.schema.names
        by_name: dict[str, list[int]] = {}
        for i, name in enumerate(own):
            by_name.setdefault(name, []).append(i)
        names = list(dict.fromkeys(own[i] for i in columns))
        places = {i: place for place, i in enumerate(i for name in names for i in by_name[name])}
        strings = [own[i] for i, type_ in zip(columns, types, strict=True) if _is_string(type_)]
        return _Wanted(names, strings, [(places[i], self._readings.get(i)) for i in columns])

    def _read_group(self, own: _Pass, group: int) -> Iterator[DeferredChunk]:
        group_rows = own.files.metadata.row_group(group).num_rows
        first_row = 1
        try:
            rows, long = self._batch_rows(own, group, group_rows)
            if not long and 0 < group_rows <= rows:
                load = partial(self._load_group, own.files, group, own.wanted)
                yield DeferredChunk(group_rows, self._bytes_of(group_rows), load)
                return
            with own.files.file(long) as file:
                batches = file.iter_batches(batch_size=rows, row_groups=[group], columns=own.wanted.names)
                for batch in batches:
                    for few in small_slices(batch, own.batch_bytes) if long else (batch,):
                        yield known_chunk(self._chunk(few, group, first_row, own.wanted))
                        first_row += few.num_rows
        except READ_ERRORS as error:
            raise self._explain(error, group, own.wanted.names) from error
        self._require_rows(group, first_row - 1, group_rows)

    def _load_group(self, files: OpenFiles, group: int, wanted: _Wanted) -> Chunk:
        """All rows of a group."""
        try:
            with files.file() as file:
                expected = file.metadata.row_group(group).num_rows
                options: Any = {"batch_size": expected, "row_groups": [group], "columns": wanted.names}
                batches = list(file.iter_batches(**options))
            self._require_rows(group, sum(batch.num_rows for batch in batches), expected)
            if len(batches) == 1:
                return self._chunk(batches[0], group, 1, wanted)
            (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
            return self._chunk(whole, group, 1, wanted)
        except READ_ERRORS as error:
            raise self._explain(error, group, wanted.names) from error

    def _chunk(self, batch: pa.RecordBatch, group: int, first_row: int, wanted: _Wanted) -> Chunk:
        arrays = [
            batch.column(place) if reading is None else reading(batch.column(place))
            for place, reading in wanted.columns
        ]
        rows = batch.select([])
        if arrays:
            rows = pa.RecordBatch.from_arrays(arrays, [str(i) for i in range(len(arrays))])
        return Chunk(rows, f"row group {group}", first_row, self._bytes_of(batch.num_rows), group)

    def _bytes_of(self, rows: int) -> int:
        """What so many rows take of the file, on average."""
        return int(self.bytes / max(self.rows, 1) * rows)

    def _require_rows(self, group: int, rows: int, expected: int) -> None:
        if rows != expected:
            raise IngestError(
                f"row group {group}: has {rows} rows where the footer says {expected}", self.path
            )

    def _batch_rows(self, own: _Pass, group: int, group_rows: int) -> tuple[int, list[str]]:
        """How many rows of a group are read at once, and which columns as dictionaries."""
        names, strings = set(own.wanted.names), set(own.wanted.strings)
        stored = (
            [(name, chunk) for name, chunk in self._chunks_by_name(own, group) if name in names]
            if names
            else []
        )
        stored_bytes = sum(chunk.bytes for _, chunk in stored)
        rows = _rows_at_once(stored_bytes, len(names), group_rows, own.batch_bytes)
        threatening = may_blow_up(
            ((name, chunk) for name, chunk in stored if name in strings), group_rows, rows, own.batch_bytes
        )
        if not threatening:
            return rows, []
        with own.files.file(threatening) as probe:
            return rows, long_strings(probe, group, threatening, rows, own.batch_bytes)

    def _chunks_by_name(self, own: _Pass, group: int) -> Iterator[tuple[str, ColumnChunk]]:
        """What the footer says of a row group's columns, by name; one of structures comes many times."""
        chunks = next(own.chunks, None)
        if chunks is None:  # another file of this name by now
            raise IngestError(f"footer: has {group} row groups where it had {self._groups}", self.path)
        for place, chunk in zip(self._leaf_places, chunks, strict=False):
            yield self.schema.names[place], chunk

    def _explain(self, error: Exception, group: int, names: list[str]) -> IngestError:
        """Name the column by reading each alone: Arrow says what is wrong with a page, not whose it is."""
        place = f"row group {group}"
        for name in names:
            try:
                with self._open() as file:
                    for _ in file.iter_batches(row_groups=[group], columns=[name], use_threads=False):
                        pass
            except READ_ERRORS as column_error:
                return unreadable(self.path, column_error, f'{place}, column "{name}"')
        return unreadable(self.path, error, place)

    def _open(
        self, dictionaries: Sequence[str] = (), metadata: pq.FileMetaData | None = None
    ) -> pq.ParquetFile:
        """The file; columns of these names come as dictionaries. Its footer is read unless it is given."""
        return pq.ParquetFile(
            open_arrow(self.path),
            metadata=metadata,
            read_dictionary=list(dictionaries) or None,
            memory_map=False,
            pre_buffer=False,
            buffer_size=_READ_BUFFER,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )


def _is_string(type_: DataType) -> bool:
    return pa.types.is_large_string(type_) or pa.types.is_large_binary(type_)


def _rows_at_once(size: int, columns: int, group_rows: int, batch_bytes: int) -> int:
    """Rows of a batch such that wide ones stay small; the group has `size` bytes in these columns."""
    rows = batch_bytes * max(group_rows, 1) // max(size, 1)
    # Batches of many columns have some rows all the same, since each costs time by the column.
    is_long = size > _LONG_VALUE * columns * max(group_rows, 1)
    return min(max(rows, 1 if is_long else _FEWEST_ROWS), BATCH_ROWS)
