"""A file with columns that are not in it: its path, its folders' keys, where its rows are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from bamquery.errors import IngestError
from bamquery.statement_context.cancellation import check_each
from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.many_files.hive_partitions import PartitionColumn
from bamquery.storage.ingest.sources.deferred_chunks import DeferredChunk, deferred_chunks
from bamquery.storage.ingest.sources.formats import Format
from bamquery.storage.ingest.sources.options import (
    FILE_INDEX,
    FILENAME,
    GROUP_NUMBER,
    ROW_NUMBER,
    PathOptions,
)
from bamquery.storage.ingest.sources.source import BATCH_BYTES, Chunk, SourceReader
from bamquery.text.identifiers import fold_case


@dataclass(frozen=True, slots=True)
class VirtualColumn:
    """A column of one file: of one value, or of numbers that follow from where rows are in the file."""

    name: str
    type: DataType
    value: pa.Scalar[Any] | None = None
    """What all rows have; None where it is `numbers`."""
    numbers: Literal["rows", "groups"] | None = None
    """Of the row in the file, or of the row group that it is in; from 0."""
    replaces: bool = False
    """Whether it stands in the place of a column of the file that has its name."""


def with_made_columns(
    readers: Sequence[SourceReader],
    partitions: Sequence[PartitionColumn],
    options: PathOptions,
    formats: Collection[Format],
) -> tuple[list[SourceReader], list[str], list[str]]:
    """The readers with the columns that are asked for, and the names of those that come behind their own.

    Names of virtual columns are apart: they are the last ones, and left out where files have such columns.

    Args:
        readers: files.
        partitions: their folders' keys, with a value for each.
        options: what else is asked for.
        formats: of the files.

    Raises:
        IngestError: a file has a column of one of these names, which is not a folder's key.
    """
    asked = [ROW_NUMBER] if options.row_number else []
    asked += [options.filename] if options.filename else []
    own = {fold_case(name) for reader in check_each(readers) for name in reader.schema.names}
    behind = [*asked, *(column.name for column in partitions if fold_case(column.name) not in own)]
    taken = {*own, *map(fold_case, behind)}
    # Where the path is called otherwise, it has that name only.
    known = [FILE_INDEX] if options.filename else [FILENAME, FILE_INDEX]
    known += [ROW_NUMBER] if {"parquet", "arrow"}.issuperset(formats) else []
    known += [GROUP_NUMBER] if {"parquet"}.issuperset(formats) else []
    hidden = [name for name in known if name in options.virtual and name not in taken]
    made: list[SourceReader] = []
    for index, reader in enumerate(check_each(readers)):
        keys = [VirtualColumn(c.name, c.type, c.values[index], replaces=True) for c in partitions]
        before = [_virtual_column(name, reader, index, options) for name in asked]
        virtual = [_virtual_column(name, reader, index, options) for name in hidden]
        made.append(VirtualColumnsReader(reader, [*before, *keys, *virtual]))
    return made, behind, hidden


def _virtual_column(name: str, reader: SourceReader, index: int, options: PathOptions) -> VirtualColumn:
    if name == ROW_NUMBER and name != options.filename:
        return VirtualColumn(name, pa.int64(), numbers="rows")
    if name == GROUP_NUMBER and name != options.filename:
        return VirtualColumn(name, pa.uint64(), numbers="groups")
    if name == FILE_INDEX and name != options.filename:
        return VirtualColumn(name, pa.uint64(), pa.scalar(index, pa.uint64()))
    return VirtualColumn(name, pa.large_string(), path_text(reader))


def path_text(reader: SourceReader) -> pa.Scalar[Any]:
    """The file's path, as a value.

    Raises:
        IngestError: it is no text.
    """
    try:
        reader.name.encode()
    except UnicodeEncodeError as error:
        raise IngestError(
            f'its name is not UTF-8, which column "{FILENAME}" is: rename the file, or do without',
            reader.path,
        ) from error
    return pa.scalar(reader.name, pa.large_string())


class VirtualColumnsReader:
    """A reader with more columns behind its own, or in place of some of them. A `SourceReader`."""

    def __init__(self, reader: SourceReader, made: Sequence[VirtualColumn]) -> None:
        """Add the columns.

        Raises:
            IngestError: the file has a column of the name of one that does not replace it.
        """
        self._wrapped = reader
        self.name = reader.name
        self.path: Path | None = reader.path
        self.rows = reader.rows
        self.bytes = reader.bytes
        self.is_text = reader.is_text
        self.schema: pa.Schema = reader.schema
        self._made: dict[int, VirtualColumn] = {}
        folded = [fold_case(name) for name in reader.schema.names]
        for column in made:
            field: pa.Field[Any] = pa.field(column.name, column.type)
            same = [place for place, name in enumerate(folded) if name == fold_case(column.name)]
            if same and not column.replaces:
                raise IngestError(
                    f"has a column \"{column.name}\" of its own: filename = 'name' calls the path otherwise",
                    reader.path,
                )
            if same:
                self.schema = self.schema.set(same[0], field)
                self._made[same[0]] = column
            else:
                self._made[len(self.schema)] = column
                self.schema = self.schema.append(field)

    @property
    def constants(self) -> Mapping[int, pa.Scalar[Any]]:
        """By position the columns that have one value in all rows, and these; known without reading."""
        return {place: made.value for place, made in self._made.items() if made.value is not None}

    def read(
        self, columns: Sequence[int], types: Sequence[DataType], batch_bytes: int = BATCH_BYTES
    ) -> Iterator[Chunk]:
        """See `SourceReader.read`."""
        for chunk in self.read_deferred(columns, types, batch_bytes):
            yield chunk.load()

    def read_deferred(
        self, columns: Sequence[int], types: Sequence[DataType], batch_bytes: int
    ) -> Iterator[DeferredChunk]:
        """See `DeferringReader.read_deferred`."""
        own = [(i, type_) for i, type_ in zip(columns, types, strict=True) if i not in self._made]
        before = 0
        places, kinds = [i for i, _ in own], [type_ for _, type_ in own]
        for chunk in deferred_chunks(self._wrapped, places, kinds, batch_bytes):
            yield chunk.map(partial(self._with_made, columns, before))
            before += chunk.rows

    def _with_made(self, columns: Sequence[int], before: int, chunk: Chunk) -> pa.RecordBatch:
        arrays = iter(chunk.batch.columns)
        wanted = [_array(self._made[i], chunk, before) if i in self._made else next(arrays) for i in columns]
        if not wanted:
            return chunk.batch.select([])
        return pa.RecordBatch.from_arrays(wanted, [str(i) for i in range(len(wanted))])


def _array(made: VirtualColumn, chunk: Chunk, before: int) -> pa.Array[Any]:
    rows = chunk.batch.num_rows
    if made.value is not None:
        return _repeat(made.value, rows)
    if made.numbers == "groups":
        return _repeat(pa.scalar(chunk.group, made.type), rows)
    return pa.array(np.arange(before, before + rows, dtype=np.int64), made.type)


def _repeat(value: Any, rows: int) -> pa.Array[Any]:
    array: pa.Array[Any] = pa.repeat(value, rows)
    return array
