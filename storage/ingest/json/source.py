"""JSON files of objects, which become rows: looked through for their types, then read for good."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from bamquery.errors import IngestError
from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.json.arrow_parser import infer_with_arrow, parse_with_arrow
from bamquery.storage.ingest.json.blocks import JsonBlock, find_layout, read_json_blocks
from bamquery.storage.ingest.json.columns import (
    Built,
    build_columns,
    common_type,
    conflict,
    infer_columns,
    natural_type,
    type_words,
)
from bamquery.storage.ingest.sources.failures import unreadable
from bamquery.storage.ingest.sources.options import NO_OPTIONS, FileOptions
from bamquery.storage.ingest.sources.source import BATCH_BYTES, Chunk
from bamquery.storage.ingest.text.date_formats import ISO_DATE, ISO_STAMPS, JSON_FORMATS, TYPES, DateFormat


@dataclass(slots=True)
class _Found:
    """What the values of one member have been so far."""

    parsed: DataType = field(default_factory=pa.null)
    """What they are parsed as: null, a number, BOOLEAN, text or a nested type."""
    formats: list[DateFormat] | None = None
    """What a text may also be; None before there was one."""

    @property
    def type(self) -> DataType:
        """What the column is."""
        is_text = pa.types.is_large_string(self.parsed)
        return self.formats[0].type if is_text and self.formats else self.parsed

    def keep_formats(self, texts: pa.Array[Any], guessed: Sequence[DateFormat]) -> None:
        """Leave out formats that do not fit; `guessed` are those that may, before any text was seen."""
        if self.formats is None:
            row = texts.is_valid().index(pa.scalar(value=True)).as_py()
            if row < 0:
                return
            first = str(texts[row].as_py())
            self.formats = [format_ for format_ in guessed if format_.fits(first)]
        self.formats = [format_ for format_ in self.formats if format_.read(texts) is not None]


def _member_of_type(kind: DataType, options: FileOptions) -> _Found:
    """Of a member whose type is said."""
    if pa.types.is_date32(kind):
        return _Found(natural_type(kind), [options.date_format or ISO_DATE])
    if kind == TYPES["timestamp"]:
        return _Found(natural_type(kind), [options.timestamp_format or ISO_STAMPS[0]])
    return _Found(natural_type(kind), [])


def _candidate_formats(options: FileOptions) -> tuple[DateFormat, ...]:
    """What a text may be whose type is not said; formats that are said are the only ones of their kind."""
    given = [one for one in (options.date_format, options.timestamp_format) if one]
    kinds = {one.kind for one in given}
    return (*given, *(one for one in JSON_FORMATS if one.kind not in kinds))


class JsonReader:
    """One JSON file, plain, gzip or zstd: an array of objects, or these in a row. A `SourceReader`.

    Columns are the objects' members in the order in which they first come up, or those that the options
    declare; objects that lack one have null there, and a null in the place of an object is a row of nulls.
    Numbers are BIGINT, HUGEINT or DOUBLE, texts that all are dates or times of one format are those. Declared
    columns are of types that cast to what is declared: text, where it is what is written that decides.

    Arrow's parser reads all that it reads right, and Python's the blocks that have anything else.
    """

    is_text: Final = False

    def __init__(self, path: Path, name: str, options: FileOptions = NO_OPTIONS) -> None:
        """Look through the file.

        Raises:
            IngestError: it is not such JSON, or a member has values of several types; names place and member.
        """
        self.path = path
        self.name = name
        try:
            self.bytes = path.stat().st_size
        except OSError as error:
            raise unreadable(path, error) from error
        self._declared = dict(options.members)
        self._found = {name: _member_of_type(kind, options) for name, kind in options.members}
        self._guessed = _candidate_formats(options)
        self._layout = find_layout(path, options.layout) if self.bytes else "lines"
        self.rows = sum(self._look_through(block) for block in self._blocks())
        if not self._found and any(b"{" in block.data for block in self._blocks()):
            raise IngestError("has no objects with members: columns={'a': 'INTEGER', …} names columns", path)
        self.schema = self._schema()

    def name_nothing(self) -> None:
        """Make a column `json`, as DuckDB does, of a file that has none: no rows, or nothing but nulls."""
        self._found["json"] = _Found(pa.null() if self.rows else pa.large_string())
        self.schema = self._schema()

    def read(
        self, columns: Sequence[int], types: Sequence[DataType], batch_bytes: int = BATCH_BYTES
    ) -> Iterator[Chunk]:
        """See `SourceReader.read`."""
        del types, batch_bytes
        names = [self.schema.names[column] for column in columns]
        parsed = pa.schema([pa.field(name, self._found[name].parsed) for name in dict.fromkeys(names)])
        share = self.bytes / max(self.rows, 1)
        for block in self._blocks():
            built = self._build_columns(block, parsed)
            if built.misfits:
                raise self._file_changed(block)
            arrays = dict(zip(parsed.names, built.arrays, strict=True))
            chosen = [self._parse_dates(arrays[name], name, block) for name in names]
            batch = pa.RecordBatch.from_arrays(chosen, names) if names else _rows_only(built.rows)
            yield Chunk(batch, block.place, 1, int(share * built.rows))

    def _schema(self) -> pa.Schema:
        return pa.schema([pa.field(name, member.type) for name, member in self._found.items()])

    def _blocks(self) -> Iterator[JsonBlock]:
        return read_json_blocks(self.path, self._layout) if self.bytes else iter(())

    def _look_through(self, block: JsonBlock) -> int:
        rows = self._try_declared(block) if self._declared else self._infer(block)
        texts = [
            name
            for name, member in self._found.items()
            if pa.types.is_large_string(member.parsed) and member.formats != []
        ]
        if texts:
            as_text = pa.schema([pa.field(name, pa.large_string()) for name in texts])
            for name, array in zip(texts, self._build_columns(block, as_text).arrays, strict=True):
                self._found[name].keep_formats(array, self._guessed)
        return rows

    def _try_declared(self, block: JsonBlock) -> int:
        """Make text of the columns with values that are not what is declared."""
        natural = pa.schema(
            [
                pa.field(name, member.parsed)
                for name, member in self._found.items()
                if not pa.types.is_large_string(member.parsed)
            ]
        )
        built = self._build_columns(block, natural)
        for name in built.misfits:
            self._found[name].parsed = pa.large_string()
        return built.rows

    def _infer(self, block: JsonBlock) -> int:
        rows, types = infer_with_arrow(block, self.path) or infer_columns(block, self.path)
        for name, type_ in types.items():
            member = self._found.setdefault(name, _Found())
            common = common_type(member.parsed, type_)
            if common is None:
                raise IngestError(conflict(block.place, name, type_words(type_), member.parsed), self.path)
            member.parsed = common
        return rows

    def _build_columns(self, block: JsonBlock, schema: pa.Schema) -> Built:
        return parse_with_arrow(block, schema, self.path) or build_columns(
            block, schema, self.path, self._declared
        )

    def _parse_dates(self, array: pa.Array[Any], name: str, block: JsonBlock) -> pa.Array[Any]:
        member = self._found[name]
        if member.type == member.parsed:
            return array
        assert member.formats, "a text that is no text has a format"
        read = member.formats[0].read(array)
        if read is None:
            raise self._file_changed(block)
        return read

    def _file_changed(self, block: JsonBlock) -> IngestError:
        return IngestError(f"{block.place}: the file changed since its types were found", self.path)


def _rows_only(rows: int) -> pa.RecordBatch:
    nothing: pa.Array[Any] = pa.nulls(rows)
    return pa.RecordBatch.from_arrays([nothing], ["rows"]).select([])
