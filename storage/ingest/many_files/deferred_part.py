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
from bamquery.storage.ingest.many_files.unified_schema import PartSchema, unify
from bamquery.storage.ingest.sources.column_names import names_in_file
from bamquery.storage.ingest.sources.source import Chunk, SourcePart
from bamquery.text.identifiers import fold_case

_LOOKED_AT: Final = {"CsvPart": 10, "JsonPart": 32}
"""How many files tell what their columns are, by what reads them; as in DuckDB. Of other formats one does."""


def open_alike(
    files: Sequence[Path], open_part: Callable[[Path], SourcePart], check: Callable[[], None]
) -> list[SourcePart]:
    """Files of which the first ones tell the columns of all; the others are opened when they are read.

    Columns are those of the first file; of JSON, where each object may lack some, those of the first files.
    Types hold the values of all files that were opened.

    Raises:
        IngestError: one of these cannot be opened, or lacks a column; or no type holds two files' values.
    """
    opened = [open_part(files[0])]
    first = opened[0]
    kind = type(first).__name__
    for file in files[1 : _LOOKED_AT.get(kind, 1)]:
        check()
        opened.append(open_part(file))
    fills = kind == "JsonPart"
    schema = _schema(opened, fills=fills) if len(opened) > 1 else first.schema
    parts: list[SourcePart] = [first] if schema.equals(first.schema) else []
    for file, part in zip(files[len(parts) :], opened[len(parts) :], strict=False):
        fitted = FittedPart(file, schema, partial(_itself, part), like=first, size=part.bytes, fills=fills)
        fitted.places(part)  # what it lacks is better known now
        parts.append(fitted)
    for file in files[len(parts) :]:
        check()
        try:
            size = os.stat(file).st_size
        except OSError:
            size = None  # which is told when it is read
        opener = partial(open_part, file)
        parts.append(FittedPart(file, schema, opener, like=first, size=size, fills=fills))
    return parts


def _schema(parts: Sequence[SourcePart], *, fills: bool) -> pa.Schema:
    wanted = {fold_case(name) for name in names_in_file(parts[0].schema.names)}
    found = []
    for part in parts:
        names = names_in_file(part.schema.names)
        fields = [field.with_name(name) for field, name in zip(part.schema, names, strict=True)]
        kept = [field for field in fields if fills or fold_case(field.name) in wanted]
        found.append(PartSchema(part.name, pa.schema(kept), part.is_text))
    return unify(found).schema


def _itself(part: SourcePart) -> SourcePart:
    return part


class FittedPart:
    """A file as columns of a schema that was found elsewhere; others that it has are left out.

    Satisfies `SourcePart`. Values of other types are converted where they are equal, as everywhere.
    """

    rows = None

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        open_part: Callable[[], SourcePart],
        *,
        like: SourcePart,
        size: int | None,
        fills: bool,
    ) -> None:
        """Open nothing.

        Args:
            path: of the file.
            schema: its columns, as are those of `like`.
            open_part: opens it.
            like: the file that it is taken to be like.
            size: in bytes, where known.
            fills: whether columns that the file lacks are null, instead of an error.
        """
        self.path = path
        self.name = str(path)
        self.schema = schema
        self.bytes = size
        self.is_text = like.is_text
        self._open = open_part
        self._like = like.name
        self._fills = fills

    def read(self, columns: Sequence[int], types: Sequence[DataType]) -> Iterator[Chunk]:
        """See `Part.read`.

        Raises:
            IngestError: also where the file lacks a column.
        """
        part = self._open()
        known = self.places(part)
        places = [known[column] for column in columns]
        read = [(place, type_) for place, type_ in zip(places, types, strict=True) if place is not None]
        for chunk in part.read([place for place, _ in read], [type_ for _, type_ in read]):
            if len(read) == len(columns):
                yield chunk
                continue
            found = iter(chunk.batch.columns)
            rows = chunk.batch.num_rows
            arrays: list[pa.Array[Any]] = [
                pa.nulls(rows) if place is None else next(found) for place in places
            ]
            batch = pa.RecordBatch.from_arrays(arrays, [str(i) for i in range(len(arrays))])
            yield Chunk(batch, chunk.place, chunk.first_row, chunk.bytes, chunk.group)

    def places(self, part: SourcePart) -> list[int | None]:
        """Where the file has each column of the schema.

        Raises:
            IngestError: it lacks one that is not to be null then.
        """
        own = {fold_case(name): place for place, name in enumerate(names_in_file(part.schema.names))}
        names = names_in_file(self.schema.names)
        found = [own.get(fold_case(name)) for name in names]
        if None in found and not self._fills:
            raise IngestError(
                f'has no column "{names[found.index(None)]}", which {self._like} has: '
                "union_by_name = true reads files with different columns",
                self.path,
            )
        return found
