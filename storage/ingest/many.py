"""Parts, one or many, as one source: columns chosen, names and types unified, batches converted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from bamquery.errors import IngestError, StorageError
from bamquery.naming import fold, suggestion
from bamquery.storage.ingest.column_names import names_in_file, names_in_object
from bamquery.storage.ingest.convert import convert_chunk
from bamquery.storage.ingest.source import BATCH_ROWS, Chunk, Part
from bamquery.storage.ingest.unify import PartSchema, unify
from bamquery.storage.types import normalize_type
from bamquery.unreadable import UnreadableType


class UnifiedSource:
    """The rows of all parts, one part after another. Satisfies `IngestSource`."""

    def __init__(
        self,
        name: str,
        parts: Sequence[Part],
        *,
        columns: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        by_need: bool = False,
    ) -> None:
        """Unify the parts' schemas.

        Args:
            name: as the user calls the source.
            parts: at least one.
            columns: those to have, in this order; None for all.
            exclude: those to leave out. A name that exactly fits leaves out that column alone, and so tells
                apart columns whose names differ by case only.
            by_need: whether columns of types that cannot be stored are refused only when they are read; in
                the schema they have an `UnreadableType`.

        Of columns with one name, the later ones that are kept get others, see `column_names`.

        Raises:
            IngestError: a column that is named does not exist, cannot be stored or has no name; or no type
                holds the values of two parts.
        """
        self.name = name
        self._parts = parts
        _require_known([*exclude, *(columns or ())], parts)
        kept = [_kept(part, columns, exclude) for part in parts]
        refused = _unreadable(parts, kept) if by_need else {}
        places = _names(parts, kept)
        kept = [
            [i for i in own if fold(part.schema.names[i]) not in refused]
            for part, own in zip(parts, kept, strict=True)
        ]
        unified = unify(
            [
                PartSchema(part.name, _normalized(part, positions), part.is_text)
                for part, positions in zip(parts, kept, strict=True)
            ]
        )
        self.schema = unified.schema
        self.drift = unified.drift
        # From positions among a part's kept columns to positions in the part itself.
        self._mapping = [
            tuple(None if i is None else positions[i] for i in mapping)
            for mapping, positions in zip(unified.mapping, kept, strict=True)
        ]
        for folded, place in places.items():
            if folded in refused:
                name, reason = refused[folded]
                self.schema = self.schema.insert(place, pa.field(name, UnreadableType(reason)))
                self._mapping = [(*m[:place], None, *m[place:]) for m in self._mapping]
        self.bytes_read = 0
        if columns is not None:
            chosen = {fold(name) for name in self.schema.names}
            order = [_position(self.schema, column) for column in columns if fold(column) in chosen]
            self.schema = pa.schema([self.schema.field(i) for i in order])
            self._mapping = [tuple(mapping[i] for i in order) for mapping in self._mapping]
        if not len(self.schema):
            raise IngestError(f"{name}: no column is left to load")

    @property
    def total_rows(self) -> int | None:
        """See `IngestSource`."""
        rows = [part.rows for part in self._parts]
        return None if None in rows else sum(n for n in rows if n is not None)

    @property
    def total_bytes(self) -> int | None:
        """See `IngestSource`."""
        sizes = [part.bytes for part in self._parts]
        return None if None in sizes else sum(n for n in sizes if n is not None)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """See `IngestSource`."""
        chosen = range(len(self.schema)) if columns is None else [_position(self.schema, c) for c in columns]
        target = pa.schema([self.schema.field(i) for i in chosen])
        for field in target:
            if isinstance(field.type, UnreadableType):
                raise IngestError(f"{self.name}: {field.type.reason}")
        self.bytes_read = 0
        for part, mapping in zip(self._parts, self._mapping, strict=True):
            for chunk in _read(part, [mapping[i] for i in chosen], target):
                self.bytes_read += chunk.bytes
                for first in range(0, chunk.batch.num_rows, BATCH_ROWS):
                    yield chunk.batch.slice(first, BATCH_ROWS)


def _read(part: Part, positions: Sequence[int | None], target: pa.Schema) -> Iterator[Chunk]:
    """The part's rows converted to `target`, whose column i is the part's column `positions[i]`."""
    wanted = [(i, field.type) for i, field in zip(positions, target, strict=True) if i is not None]
    distinct = dict(wanted)
    place = {position: i for i, position in enumerate(distinct)}
    places = [None if i is None else place[i] for i in positions]
    for chunk in part.read(list(distinct), list(distinct.values())):
        if chunk.batch.num_rows:
            batch = convert_chunk(chunk, places, target, part)
            yield Chunk(batch, chunk.place, chunk.first_row, chunk.bytes)


def _require_known(names: Sequence[str], parts: Sequence[Part]) -> None:
    known = {fold(name): name for part in parts for name in [*part.schema.names, *_unique(part)]}
    for name in names:
        if fold(name) not in known:
            raise IngestError(
                f'{parts[0].name}: there is no column "{name}".{suggestion(name, known.values())}'
                + (f" (Nor in the {len(parts) - 1} other files)" if len(parts) > 1 else "")
            )


def _kept(part: Part, columns: Sequence[str] | None, exclude: Sequence[str]) -> list[int]:
    """Positions of the columns that are neither excluded nor left unnamed by `columns`."""
    names = part.schema.names
    unique = _unique(part)
    excluded = {i for name in exclude for i in _named(names, name) or _named(unique, name)}
    chosen = set(range(len(names)))
    if columns is not None:
        chosen = {i for name in columns for i in _named(names, name) or _named(unique, name)}
    return [i for i in range(len(names)) if i in chosen - excluded]


def _names(parts: Sequence[Part], kept: Sequence[Sequence[int]]) -> dict[str, int]:
    """The kept columns of all parts, folded, in the order in which they first appear, and their places."""
    names = (part.schema.names[i] for part, own in zip(parts, kept, strict=True) for i in own)
    return {name: place for place, name in enumerate(dict.fromkeys(map(fold, names)))}


def _unreadable(parts: Sequence[Part], kept: Sequence[Sequence[int]]) -> dict[str, tuple[str, str]]:
    """By folded name the columns whose types cannot be stored in one part or another: spelling and reason."""
    found: dict[str, tuple[str, str]] = {}
    for part, own in zip(parts, kept, strict=True):
        for field in map(part.schema.field, own):
            try:
                normalize_type(field.type, field.name)
            except StorageError as error:
                # What follows is how to load the file.
                found.setdefault(fold(field.name), (field.name, str(error).rpartition(": ")[0]))
    return found


def _named(names: Sequence[str], wanted: str) -> list[int]:
    exact = [i for i, name in enumerate(names) if name == wanted]
    return exact or [i for i, name in enumerate(names) if fold(name) == fold(wanted)]


def _unique(part: Part, positions: Sequence[int] | None = None) -> list[str]:
    """Names of columns, of those at `positions` if these are given, that differ in more than case."""
    names = [part.schema.names[i] for i in positions] if positions is not None else part.schema.names
    return names_in_object(names) if part.path is None else names_in_file(names)


def _normalized(part: Part, positions: Sequence[int]) -> pa.Schema:
    """The kept columns as they would be stored.

    Raises:
        IngestError: some cannot; names all of them and how to leave them out.
    """
    fields = []
    refused: list[str] = []
    reasons: list[str] = []
    for position, name in zip(positions, _unique(part, positions), strict=True):
        field = part.schema.field(position)
        if not field.name:
            raise _error(part, f"column {position + 1} has no name: give it one, or name the columns to load")
        try:
            fields.append(pa.field(name, normalize_type(field.type, name)))
        except StorageError as error:
            refused.append(field.name)
            reasons.append(str(error))
    if refused:
        names = ", ".join(f'"{name}"' for name in refused)
        raise _error(part, f"{'; '.join(reasons)}. To load the rest: exclude=[{names}]")
    return pa.schema(fields)


def _error(part: Part, message: str) -> IngestError:
    return IngestError(message, part.path) if part.path else IngestError(f"{part.name}: {message}")


def _position(schema: pa.Schema, column: str) -> int:
    for i, name in enumerate(schema.names):
        if fold(name) == fold(column):
            return i
    raise IngestError(f'there is no column "{column}".{suggestion(column, schema.names)}')
