"""Parquet files, a row group at a time and a row group a few pages at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from bamquery.errors import IngestError
from bamquery.storage.database.file_access import open_arrow
from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.parquet.dictionary_strings import long_strings, may_blow_up, small_slices
from bamquery.storage.ingest.parquet.footer import ColumnChunk, column_chunks
from bamquery.storage.ingest.parquet.logical_types import Reading, leaf_places, meant_types
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
        wanted = self._wanted_leaves(columns, types)
        try:
            with self._open() as file:
                for group in range(self._groups):
                    yield from self._read_group(file, group, wanted, batch_bytes)
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

    def _read_group(
        self, file: pq.ParquetFile, group: int, wanted: _Wanted, batch_bytes: int
    ) -> Iterator[Chunk]:
        first_row = 1
        bytes_per_row = self.bytes / max(self.rows, 1)
        try:
            for batch in self._batches(file, group, wanted, batch_bytes):
                arrays = [
                    batch.column(place) if reading is None else reading(batch.column(place))
                    for place, reading in wanted.columns
                ]
                rows = batch.select([])
                if arrays:
                    rows = pa.RecordBatch.from_arrays(arrays, [str(i) for i in range(len(arrays))])
                size = int(bytes_per_row * batch.num_rows)
                yield Chunk(rows, f"row group {group}", first_row, size, group)
                first_row += batch.num_rows
        except READ_ERRORS as error:
            raise self._explain(error, group, wanted.names) from error
        if first_row - 1 != (expected := file.metadata.row_group(group).num_rows):
            raise IngestError(
                f"row group {group}: has {first_row - 1} rows where the footer says {expected}", self.path
            )

    def _batches(
        self, file: pq.ParquetFile, group: int, wanted: _Wanted, batch_bytes: int
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a group, few at once where they are wide."""
        group_rows = file.metadata.row_group(group).num_rows
        names, strings = set(wanted.names), set(wanted.strings)
        stored = (
            [(name, chunk) for name, chunk in self._chunks_by_name(group) if name in names] if names else []
        )
        stored_bytes = sum(chunk.bytes for _, chunk in stored)
        rows = _batch_rows(stored_bytes, len(names), group_rows, batch_bytes)
        long: list[str] = []
        threatening = may_blow_up(
            ((name, chunk) for name, chunk in stored if name in strings), group_rows, rows, batch_bytes
        )
        if threatening:
            with self._open(threatening) as probe:
                long = long_strings(probe, group, threatening, rows, batch_bytes)
        if not long:
            yield from file.iter_batches(batch_size=rows, row_groups=[group], columns=wanted.names)
            return
        with self._open(long) as dictionaries:
            for batch in dictionaries.iter_batches(batch_size=rows, row_groups=[group], columns=wanted.names):
                yield from small_slices(batch, batch_bytes)

    def _chunks_by_name(self, group: int) -> Iterator[tuple[str, ColumnChunk]]:
        """What the footer says of a row group's columns, by name; one of structures comes many times."""
        for place, chunk in zip(self._leaf_places, self._chunks[group], strict=False):
            yield self.schema.names[place], chunk

    @cached_property
    def _chunks(self) -> list[list[ColumnChunk]]:
        chunks = column_chunks(self.path)
        if len(chunks) != self._groups:  # another file of this name by now
            raise IngestError(f"footer: has {len(chunks)} row groups where it had {self._groups}", self.path)
        return chunks

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

    def _open(self, dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
        """The file; columns of these names come as dictionaries."""
        return pq.ParquetFile(
            open_arrow(self.path),
            read_dictionary=list(dictionaries) or None,
            memory_map=False,
            pre_buffer=False,
            buffer_size=_READ_BUFFER,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )


def _is_string(type_: DataType) -> bool:
    return pa.types.is_large_string(type_) or pa.types.is_large_binary(type_)


def _batch_rows(size: int, columns: int, group_rows: int, batch_bytes: int) -> int:
    """Rows of a batch such that wide ones stay small; the group has `size` bytes in these columns."""
    rows = batch_bytes * max(group_rows, 1) // max(size, 1)
    # Batches of many columns have some rows all the same, since each costs time by the column.
    is_long = size > _LONG_VALUE * columns * max(group_rows, 1)
    return min(max(rows, 1 if is_long else _FEWEST_ROWS), BATCH_ROWS)
