"""JSON files of objects, which become rows: looked through for their types, then read for good."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bamquery.errors import IngestError
from bamquery.storage.ingest.failures import unreadable
from bamquery.storage.ingest.json_arrow import infer_with_arrow, parse_with_arrow
from bamquery.storage.ingest.json_blocks import JsonBlock, find_layout, read_json_blocks
from bamquery.storage.ingest.json_columns import (
    Built,
    build_columns,
    common_type,
    conflict,
    infer_columns,
    natural_type,
    type_words,
)
from bamquery.storage.ingest.options import NO_OPTIONS, FileOptions
from bamquery.storage.ingest.source import Chunk
from bamquery.storage.types import DataType

_DATE_SHAPE: Final = r"^\d{4}-\d{2}-\d{2}$"
_STAMP_SHAPE: Final = r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?$"
_DATE, _STAMP = pa.date32(), pa.timestamp("us")


@dataclass(slots=True)
class _Found:
    """What the values of one member have been so far."""

    parsed: DataType = field(default_factory=pa.null)
    """What they are parsed as: null, a number, BOOLEAN, text or a nested type."""
    readings: list[DataType] = field(default_factory=lambda: [_DATE, _STAMP])
    """What a text may also be."""

    @property
    def type(self) -> DataType:
        """What the column is."""
        return self.readings[0] if pa.types.is_large_string(self.parsed) and self.readings else self.parsed


def _declared(kind: DataType) -> _Found:
    """Of a member whose type is said."""
    readings: list[DataType] = [_DATE] if kind == _DATE else [_DATE, _STAMP] if kind == _STAMP else []
    return _Found(natural_type(kind), readings)


class JsonPart:
    """One JSON file, plain, gzip or zstd: an array of objects, or one after another. Satisfies `Part`.

    Columns are the objects' members in the order in which they first come up, or those that the options
    declare; objects that lack one have null there, and a null in the place of an object is a row of nulls.
    Numbers are BIGINT, HUGEINT or DOUBLE, texts that all are dates or timestamps are those. Declared columns
    are of types that cast to what is declared: text, where it is what is written that decides.

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
        self._found = {name: _declared(kind) for name, kind in options.members}
        self._layout = find_layout(path, options.layout) if self.bytes else "lines"
        self.rows = sum(self._look_through(block) for block in self._blocks())
        if not self._found and any(b"{" in block.data for block in self._blocks()):
            raise IngestError("has no objects with members: columns={'a': 'INTEGER', …} names columns", path)
        self.schema = self._schema()

    def name_nothing(self) -> None:
        """Make a column `json`, as DuckDB does, of a file that has none: no rows, or nothing but nulls."""
        self._found["json"] = _Found(pa.null() if self.rows else pa.large_string(), [])
        self.schema = self._schema()

    def read(self, columns: Sequence[int], types: Sequence[DataType]) -> Iterator[Chunk]:
        """See `Part.read`."""
        del types
        names = [self.schema.names[column] for column in columns]
        parsed = pa.schema([pa.field(name, self._found[name].parsed) for name in dict.fromkeys(names)])
        share = self.bytes / max(self.rows, 1)
        for block in self._blocks():
            built = self._built(block, parsed)
            if built.misfits:
                raise self._changed(block)
            arrays = dict(zip(parsed.names, built.arrays, strict=True))
            chosen = [self._interpreted(arrays[name], name, block) for name in names]
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
            if pa.types.is_large_string(member.parsed) and member.readings
        ]
        if texts:
            as_text = pa.schema([pa.field(name, pa.large_string()) for name in texts])
            for name, array in zip(texts, self._built(block, as_text).arrays, strict=True):
                readings = self._found[name].readings
                readings[:] = [kind for kind in readings if _read_as(array, kind) is not None]
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
        built = self._built(block, natural)
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

    def _built(self, block: JsonBlock, schema: pa.Schema) -> Built:
        return parse_with_arrow(block, schema, self.path) or build_columns(
            block, schema, self.path, self._declared
        )

    def _interpreted(self, array: pa.Array[Any], name: str, block: JsonBlock) -> pa.Array[Any]:
        member = self._found[name]
        if member.type == member.parsed:
            return array
        read = _read_as(array, member.type)
        if read is None:
            raise self._changed(block)
        return read

    def _changed(self, block: JsonBlock) -> IngestError:
        return IngestError(f"{block.place}: the file changed since its types were found", self.path)


def _rows_only(rows: int) -> pa.RecordBatch:
    nothing: pa.Array[Any] = pa.nulls(rows)
    return pa.RecordBatch.from_arrays([nothing], ["rows"]).select([])


def _read_as(texts: pa.Array[Any], kind: DataType) -> pa.Array[Any] | None:
    """The texts as dates or timestamps; None if one of them is none."""
    shape = _DATE_SHAPE if kind == _DATE else _STAMP_SHAPE
    if pc.all(pc.match_substring_regex(texts, shape), min_count=0).as_py() is False:
        return None
    try:
        return pc.cast(texts, kind)
    except pa.ArrowInvalid:
        return None
