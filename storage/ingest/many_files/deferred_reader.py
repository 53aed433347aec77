"""A file whose columns are taken to be those of others, so that it is opened only when it is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from bamquery.errors import IngestError
from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.many_files.unified_schema import ReaderSchema, unify
from bamquery.storage.ingest.sources.column_names import names_in_file
from bamquery.storage.ingest.sources.deferred_chunks import DeferredChunk, deferred_chunks
from bamquery.storage.ingest.sources.source import BATCH_BYTES, Chunk, SourceReader
from bamquery.text.identifiers import fold_case

_LOOKED_AT: Final = {"CsvReader": 10, "JsonReader": 32}
"""How many files tell what their columns are, by what reads them; as in DuckDB. Of other formats one does."""


def open_alike(
    files: Sequence[Path], open_reader: Callable[[Path], SourceReader], check: Callable[[], None]
) -> list[SourceReader]:
    """Files of which the first ones tell the columns of all; the others are opened when they are read.

    Columns are those of the first file; of JSON, where each object may lack some, those of the first files.
    Types hold the values of all files that were opened.

    Raises:
        IngestError: one of these cannot be opened, or lacks a column; or no type holds two files' values.
    """
    opened = [open_reader(files[0])]
    first = opened[0]
    kind = type(first).__name__
    for file in files[1 : _LOOKED_AT.get(kind, 1)]:
        check()
        opened.append(open_reader(file))
    fills = kind == "JsonReader"
    schema = _schema(opened, fills=fills) if len(opened) > 1 else first.schema
    readers: list[SourceReader] = [first] if schema.equals(first.schema) else []
    for file, reader in zip(files[len(readers) :], opened[len(readers) :], strict=False):
        fitted = FittedReader(
            file, schema, partial(_itself, reader), like=first, size=reader.bytes, fills=fills
        )
        fitted.places(reader)  # what it lacks is better known now
        readers.append(fitted)
    for file in files[len(readers) :]:
        check()
        try:
            size = os.stat(file).st_size
        except OSError:
            size = None  # which is told when it is read
        opener = partial(open_reader, file)
        readers.append(FittedReader(file, schema, opener, like=first, size=size, fills=fills))
    return readers


def _schema(readers: Sequence[SourceReader], *, fills: bool) -> pa.Schema:
    wanted = {fold_case(name) for name in names_in_file(readers[0].schema.names)}
    found = []
    for reader in readers:
        names = names_in_file(reader.schema.names)
        fields = [field.with_name(name) for field, name in zip(reader.schema, names, strict=True)]
        kept = [field for field in fields if fills or fold_case(field.name) in wanted]
        found.append(ReaderSchema(reader.name, pa.schema(kept), reader.is_text))
    return unify(found).schema


def _with_nulls(places: Sequence[int | None], chunk: Chunk) -> pa.RecordBatch:
    found = iter(chunk.batch.columns)
    rows = chunk.batch.num_rows
    arrays: list[pa.Array[Any]] = [pa.nulls(rows) if place is None else next(found) for place in places]
    return pa.RecordBatch.from_arrays(arrays, [str(i) for i in range(len(arrays))])


def _itself(reader: SourceReader) -> SourceReader:
    return reader


class FittedReader:
    """A file as columns of a schema that was found elsewhere; others that it has are left out.

    Satisfies `SourceReader`. Values of other types are converted where they are equal, as everywhere.
    """

    rows = None

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        open_reader: Callable[[], SourceReader],
        *,
        like: SourceReader,
        size: int | None,
        fills: bool,
    ) -> None:
        """Open nothing.

        Args:
            path: of the file.
            schema: its columns, as are those of `like`.
            open_reader: opens it.
            like: the file that it is taken to be like.
            size: in bytes, where known.
            fills: whether columns that the file lacks are null, instead of an error.
        """
        self.path = path
        self.name = str(path)
        self.schema = schema
        self.bytes = size
        self.is_text = like.is_text
        self._open = open_reader
        self._like = like.name
        self._fills = fills

    def read(
        self, columns: Sequence[int], types: Sequence[DataType], batch_bytes: int = BATCH_BYTES
    ) -> Iterator[Chunk]:
        """See `SourceReader.read`.

        Raises:
            IngestError: also where the file lacks a column.
        """
        for chunk in self.read_deferred(columns, types, batch_bytes):
            yield chunk.load()

    def read_deferred(
        self, columns: Sequence[int], types: Sequence[DataType], batch_bytes: int
    ) -> Iterator[DeferredChunk]:
        """See `DeferringReader.read_deferred`; raises as `read`."""
        reader = self._open()
        known = self.places(reader)
        places = [known[column] for column in columns]
        read = [(place, type_) for place, type_ in zip(places, types, strict=True) if place is not None]
        own, kinds = [place for place, _ in read], [type_ for _, type_ in read]
        for chunk in deferred_chunks(reader, own, kinds, batch_bytes):
            yield chunk if len(read) == len(columns) else chunk.map(partial(_with_nulls, places))

    def places(self, reader: SourceReader) -> list[int | None]:
        """Where the file has each column of the schema.

        Raises:
            IngestError: it lacks one that is not to be null then.
        """
        own = {fold_case(name): place for place, name in enumerate(names_in_file(reader.schema.names))}
        names = names_in_file(self.schema.names)
        found = [own.get(fold_case(name)) for name in names]
        if None in found and not self._fills:
            raise IngestError(
                f'has no column "{names[found.index(None)]}", which {self._like} has: '
                "union_by_name = true reads files with different columns",
                self.path,
            )
        return found
