"""Readers, one or many, as one source: columns chosen, names and types unified, batches converted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from bamquery.data_types.unreadable import UnreadableType
from bamquery.errors import IngestError, StorageError
from bamquery.statement_context.cancellation import check_cancelled, check_each
from bamquery.storage.format.storable_types import DataType, normalize_type
from bamquery.storage.ingest.arrow.convert import INTERVAL, convert_chunk
from bamquery.storage.ingest.many_files.unified_schema import ReaderSchema, unify
from bamquery.storage.ingest.many_files.virtual_columns import VirtualColumnsReader
from bamquery.storage.ingest.sources.column_names import names_in_file, names_in_object
from bamquery.storage.ingest.sources.deferred_chunks import DeferredChunk, deferred_chunks, known_chunk
from bamquery.storage.ingest.sources.source import (
    BATCH_BYTES,
    BATCH_ROWS,
    Chunk,
    DeferredBatch,
    SourceReader,
)
from bamquery.text.identifiers import fold_case, suggestion


class UnifiedSource:
    """The rows of all readers, one reader after another. Satisfies `IngestSource`."""

    def __init__(
        self,
        name: str,
        readers: Sequence[SourceReader],
        *,
        columns: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        by_need: bool = False,
        virtual_columns: Sequence[str] = (),
        hidden_columns: Sequence[str] = (),
    ) -> None:
        """Unify the readers' schemas.

        Args:
            name: as the user calls the source.
            readers: at least one.
            columns: those to have, in this order; None for all.
            exclude: those to leave out. A name that exactly fits leaves out that column alone, and so tells
                apart columns whose names differ by case only.
            by_need: whether columns of types that cannot be stored are refused only when they are read; in
                the schema they have an `UnreadableType`, but for INTERVAL, which can be read.
            virtual_columns: see `IngestSource`; the readers have them last, and
            hidden_columns: behind them.

        Of columns with one name, the later ones that are kept get others, see `column_names`.

        Raises:
            IngestError: a column that is named does not exist, cannot be stored or has no name; or no type
                holds the values of two readers.
        """
        self.name = name
        self.virtual_columns = virtual_columns
        self.hidden_columns = hidden_columns
        self._readers = readers
        _require_known([*exclude, *(columns or ())], readers)
        kept = [_kept_positions(reader, columns, exclude) for reader in check_each(readers)]
        refused = _unreadable(readers, kept) if by_need else {}
        places = _names(readers, kept)
        if refused:
            kept = [
                [i for i in own if fold_case(names[i]) not in refused]
                for names, own in zip(
                    (reader.schema.names for reader in check_each(readers)), kept, strict=True
                )
            ]
        unified = unify(
            [
                ReaderSchema(reader.name, _stored_schema(reader, positions, by_need), reader.is_text)
                for reader, positions in check_each(zip(readers, kept, strict=True))
            ]
        )
        self.schema = unified.schema
        self.drift = unified.drift
        # From positions among a reader's kept columns to positions in the reader itself.
        self._mapping = [
            tuple(None if i is None else positions[i] for i in mapping)
            for mapping, positions in check_each(zip(unified.mapping, kept, strict=True))
        ]
        if refused:
            self._add_unreadable(places, refused)
        last = [*map(fold_case, (*virtual_columns, *hidden_columns))]
        if len(readers) > 1 and last:
            ranks = [last.index(name) if name in last else -1 for name in map(fold_case, self.schema.names)]
            self._arrange(sorted(range(len(ranks)), key=ranks.__getitem__))
        self.bytes_read = 0
        if columns is not None:
            chosen = {fold_case(name) for name in self.schema.names}
            self._arrange(_positions(self.schema, [name for name in columns if fold_case(name) in chosen]))
        if not len(self.schema):
            raise IngestError(f"{name}: no column is left to load")

    def _add_unreadable(self, places: Mapping[str, int], refused: Mapping[str, tuple[str, str]]) -> None:
        """Put columns whose types cannot be stored where they come up in the files."""
        fields = list(self.schema)
        mapping = [list(own) for own in self._mapping]
        for folded, place in places.items():
            if folded in refused:
                name, reason = refused[folded]
                fields.insert(place, pa.field(name, UnreadableType(reason)))
                for own in mapping:
                    own.insert(place, None)
        self.schema = pa.schema(fields)
        self._mapping = [tuple(own) for own in mapping]

    def _arrange(self, order: Sequence[int]) -> None:
        self.schema = pa.schema([self.schema.field(i) for i in order])
        self._mapping = [tuple(mapping[i] for i in order) for mapping in check_each(self._mapping)]

    @property
    def total_rows(self) -> int | None:
        """See `IngestSource`."""
        return self.totals()[0]

    @property
    def total_bytes(self) -> int | None:
        """See `IngestSource`."""
        return self.totals()[1]

    def totals(self, files: Sequence[int] | None = None) -> tuple[int | None, int | None]:
        """See `IngestSource`."""
        readers = self._readers if files is None else [self._readers[number] for number in files]
        return _sum(reader.rows for reader in readers), _sum(reader.bytes for reader in readers)

    @property
    def file_count(self) -> int:
        """See `IngestSource`."""
        return len(self._readers)

    @property
    def file_columns(self) -> Sequence[int]:
        """See `IngestSource`."""
        first = self._readers[0]
        if not isinstance(first, VirtualColumnsReader):
            return []  # all readers are made alike
        return [place for place, own in enumerate(self._mapping[0]) if own in first.constants]

    def file_values(self, columns: Sequence[int]) -> pa.RecordBatch:
        """See `IngestSource`."""
        wanted = pa.schema([self.schema.field(column) for column in columns])
        values: list[list[Any]] = [[] for _ in columns]
        for reader, mapping in check_each(zip(self._readers, self._mapping, strict=True)):
            assert isinstance(reader, VirtualColumnsReader)
            for column, found in zip(columns, values, strict=True):
                place = mapping[column]
                assert place is not None
                found.append(reader.constants[place])
        arrays = [pa.array(found, field.type) for found, field in zip(values, wanted, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=wanted)

    def batches(
        self,
        columns: Sequence[str] | None = None,
        files: Sequence[int] | None = None,
        batch_bytes: int = BATCH_BYTES,
    ) -> Iterator[pa.RecordBatch]:
        """See `IngestSource`."""
        self.bytes_read = 0
        for batch in self.deferred_batches(columns, files, batch_bytes):
            self.bytes_read += batch.bytes
            yield batch.load()

    def deferred_batches(
        self,
        columns: Sequence[str] | None = None,
        files: Sequence[int] | None = None,
        batch_bytes: int = BATCH_BYTES,
    ) -> Iterator[DeferredBatch]:
        """See `IngestSource`."""
        chosen = range(len(self.schema)) if columns is None else _positions(self.schema, columns)
        target = pa.schema([self.schema.field(i) for i in chosen])
        for field in target:
            if isinstance(field.type, UnreadableType):
                raise IngestError(f"{self.name}: {field.type.reason}")
        for number in range(len(self._readers)) if files is None else files:
            check_cancelled()  # files without rows give nobody else a chance to
            mapping = self._mapping[number]
            yield from _read_all(self._readers[number], [mapping[i] for i in chosen], target, batch_bytes)


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Of all; None where one is not known."""
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total


def _read_all(
    reader: SourceReader, positions: Sequence[int | None], target: pa.Schema, batch_bytes: int
) -> Iterator[DeferredBatch]:
    """The reader's rows converted to `target`, whose column i is the reader's column `positions[i]`."""
    wanted = [(i, field.type) for i, field in zip(positions, target, strict=True) if i is not None]
    distinct = dict(wanted)
    place = {position: i for i, position in enumerate(distinct)}
    places = [None if i is None else place[i] for i in positions]
    for chunk in deferred_chunks(reader, list(distinct), list(distinct.values()), batch_bytes):
        for piece in _small_chunks(chunk):
            yield DeferredBatch(piece.rows, piece.bytes, partial(_convert, piece, places, target, reader))


def _small_chunks(chunk: DeferredChunk) -> Iterator[DeferredChunk]:
    """The chunk's rows, not too many at once; none where there are none."""
    if 0 < chunk.rows <= BATCH_ROWS:
        yield chunk
    elif chunk.rows:
        whole = chunk.load()
        for first in range(0, chunk.rows, BATCH_ROWS):
            rows = whole.batch.slice(first, BATCH_ROWS)
            size = 0 if first else whole.bytes
            yield known_chunk(Chunk(rows, whole.place, whole.first_row + first, size, whole.group))


def _convert(
    chunk: DeferredChunk, places: Sequence[int | None], target: pa.Schema, reader: SourceReader
) -> pa.RecordBatch:
    return convert_chunk(chunk.load(), places, target, reader)


def _require_known(names: Sequence[str], readers: Sequence[SourceReader]) -> None:
    known = {
        fold_case(name): name
        for reader in check_each(readers)
        for name in [*reader.schema.names, *_unique(reader)]
    }
    for name in names:
        if fold_case(name) not in known:
            raise IngestError(
                f'{readers[0].name}: there is no column "{name}".{suggestion(name, known.values())}'
                + (f" (Nor in the {len(readers) - 1} other files)" if len(readers) > 1 else "")
            )


def _kept_positions(reader: SourceReader, columns: Sequence[str] | None, exclude: Sequence[str]) -> list[int]:
    """Positions of the columns that are neither excluded nor left unnamed by `columns`."""
    names = reader.schema.names
    unique = _unique(reader)
    excluded = {
        i for name in exclude for i in _positions_named(names, name) or _positions_named(unique, name)
    }
    chosen = set(range(len(names)))
    if columns is not None:
        chosen = {
            i for name in columns for i in _positions_named(names, name) or _positions_named(unique, name)
        }
    return sorted(chosen - excluded)


def _names(readers: Sequence[SourceReader], kept: Sequence[Sequence[int]]) -> dict[str, int]:
    """The kept columns of all readers, folded, in the order in which they first appear, and their places."""
    known = (reader.schema.names for reader in check_each(readers))
    found = (names[i] for names, own in zip(known, kept, strict=True) for i in own)
    return {name: place for place, name in enumerate(dict.fromkeys(map(fold_case, found)))}


def _unreadable(readers: Sequence[SourceReader], kept: Sequence[Sequence[int]]) -> dict[str, tuple[str, str]]:
    """By folded name the columns whose types cannot be stored in some reader: spelling and reason."""
    found: dict[str, tuple[str, str]] = {}
    for reader, own in check_each(zip(readers, kept, strict=True)):
        for field in map(reader.schema.field, own):
            try:
                _column_type(field, by_need=True)
            except StorageError as error:
                # What follows is how to load the file.
                found.setdefault(fold_case(field.name), (field.name, str(error).rpartition(": ")[0]))
    return found


def _positions_named(names: Sequence[str], wanted: str) -> list[int]:
    exact = [i for i, name in enumerate(names) if name == wanted]
    return exact or [i for i, name in enumerate(names) if fold_case(name) == fold_case(wanted)]


def _unique(reader: SourceReader, positions: Sequence[int] | None = None) -> list[str]:
    """Names of columns, of those at `positions` if these are given, that differ in more than case."""
    names = reader.schema.names
    if positions is not None:
        names = [names[i] for i in positions]
    return names_in_object(names) if reader.path is None else names_in_file(names)


def _column_type(field: pa.Field[Any], by_need: bool) -> DataType:
    """The type under which values are stored, or of INTERVAL, which queries have and tables have not, read.

    Raises:
        StorageError: there is none.
    """
    if by_need and field.type == INTERVAL:
        return INTERVAL
    return normalize_type(field.type, field.name)


def _stored_schema(reader: SourceReader, positions: Sequence[int], by_need: bool) -> pa.Schema:
    """The kept columns as they would be stored.

    Raises:
        IngestError: some cannot; names all of them and how to leave them out.
    """
    fields = []
    refused: list[str] = []
    reasons: list[str] = []
    for position, name in zip(positions, _unique(reader, positions), strict=True):
        field = reader.schema.field(position)
        if not field.name:
            raise _error(
                reader, f"column {position + 1} has no name: give it one, or name the columns to load"
            )
        try:
            fields.append(pa.field(name, _column_type(field.with_name(name), by_need)))
        except StorageError as error:
            refused.append(field.name)
            reasons.append(str(error))
    if refused:
        names = ", ".join(f'"{name}"' for name in refused)
        raise _error(reader, f"{'; '.join(reasons)}. To load the rest: exclude=[{names}]")
    return pa.schema(fields)


def _error(reader: SourceReader, message: str) -> IngestError:
    return IngestError(message, reader.path) if reader.path else IngestError(f"{reader.name}: {message}")


def _positions(schema: pa.Schema, columns: Sequence[str]) -> list[int]:
    places = {fold_case(name): i for i, name in reversed(list(enumerate(schema.names)))}
    for column in columns:
        if fold_case(column) not in places:
            raise IngestError(f'there is no column "{column}".{suggestion(column, schema.names)}')
    return [places[fold_case(column)] for column in columns]
