"""JSON files of objects, which become rows: looked through for their types, then read for good."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from bamquery.errors import IngestError
from bamquery.storage.ingest.failures import reason, unreadable
from bamquery.storage.ingest.json_blocks import JsonBlock, is_array, read_json_blocks
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
    """What the parser is asked for: null, a number, BOOLEAN, text or a nested type."""
    readings: list[DataType] = field(default_factory=lambda: [_DATE, _STAMP])
    """What a text may also be."""

    @property
    def type(self) -> DataType:
        """What the column is."""
        return self.readings[0] if pa.types.is_large_string(self.parsed) and self.readings else self.parsed


class JsonPart:
    """One JSON file, plain or gzip: an array of objects, or an object a line. Satisfies `Part`.

    Columns are the objects' members in the order in which they first come up; objects that lack one have null
    there. Numbers are BIGINT or DOUBLE, texts that all are dates or timestamps are those.
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
        self._array = is_array(path, options.layout)
        found: dict[str, _Found] = {}
        rows = 0
        for block in read_json_blocks(path, array=self._array):
            rows += self._look_through(block, found)
        if not found:
            raise IngestError("has no objects with members", path)
        self.rows = rows
        self._found = found
        self.schema = pa.schema([pa.field(name, member.type) for name, member in found.items()])

    def read(self, columns: Sequence[int], types: Sequence[DataType]) -> Iterator[Chunk]:
        """See `Part.read`."""
        del types
        names = [self.schema.names[column] for column in columns]
        wanted = names or self.schema.names[:1]
        parsed = pa.schema([pa.field(name, self._found[name].parsed) for name in dict.fromkeys(wanted)])
        first_row = 1
        share = self.bytes / max(self.rows, 1)
        for block in read_json_blocks(self.path, array=self._array):
            table = self._parse(block, parsed)
            arrays = [self._interpreted(table.column(name), name, block) for name in names]
            batch = pa.RecordBatch.from_arrays(arrays, names) if names else _rows_only(table.num_rows)
            yield Chunk(batch, block.place, first_row, int(share * table.num_rows))

    def _look_through(self, block: JsonBlock, found: dict[str, _Found]) -> int:
        table = self._parse(block, None)
        texts = []
        for name, type_ in zip(table.column_names, table.schema.types, strict=True):
            member = found.setdefault(name, _Found())
            # Arrow makes timestamps of some texts; which texts are is decided by all of them.
            is_text = pa.types.is_string(type_) or pa.types.is_timestamp(type_)
            member.parsed = self._common(member.parsed, pa.large_string() if is_text else type_, name, block)
            if is_text and member.readings:
                texts.append(name)
        if texts:
            as_text = pa.schema([pa.field(name, pa.large_string()) for name in texts])
            again = self._parse(block, as_text)
            for name in texts:
                readings = found[name].readings
                readings[:] = [kind for kind in readings if _read_as(again.column(name), kind) is not None]
        return int(table.num_rows)

    def _parse(self, block: JsonBlock, schema: pa.Schema | None) -> pa.Table:
        try:
            block.data.decode()
            return json.read_json(
                io.BytesIO(block.data),
                read_options=json.ReadOptions(block_size=len(block.data) + 1, use_threads=False),
                parse_options=json.ParseOptions(
                    explicit_schema=schema,
                    newlines_in_values=self._array,
                    unexpected_field_behavior="infer" if schema is None else "ignore",
                ),
            )
        except UnicodeDecodeError as error:
            raise IngestError(
                f"{block.place}: is not UTF-8 text: convert it (iconv -f LATIN1 -t UTF-8)", self.path
            ) from error
        except pa.ArrowInvalid as error:
            raise IngestError(f"{block.place}: cannot be read: {reason(error)}", self.path) from error

    def _common(self, one: DataType, other: DataType, name: str, block: JsonBlock) -> DataType:
        if one == other or pa.types.is_null(other):
            return one
        if pa.types.is_null(one):
            return other
        if {one, other} == {pa.int64(), pa.float64()}:
            return pa.float64()
        raise IngestError(f'{block.place}: member "{name}" is {other}, and {one} before', self.path)

    def _interpreted(self, column: pa.ChunkedArray[Any], name: str, block: JsonBlock) -> pa.Array[Any]:
        member = self._found[name]
        array: Any = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if member.type == member.parsed:
            return array  # type: ignore[no-any-return]
        read = _read_as(column, member.type)
        if read is None:
            raise IngestError(f"{block.place}: the file changed since its types were found", self.path)
        result: Any = read.combine_chunks()
        return result  # type: ignore[no-any-return]


def _rows_only(rows: int) -> pa.RecordBatch:
    nothing: pa.Array[Any] = pa.nulls(rows)
    return pa.RecordBatch.from_arrays([nothing], ["rows"]).select([])


def _read_as(texts: pa.ChunkedArray[Any], kind: DataType) -> pa.ChunkedArray[Any] | None:
    """The texts as dates or timestamps; None if one of them is none."""
    shape = _DATE_SHAPE if kind == _DATE else _STAMP_SHAPE
    if pc.all(pc.match_substring_regex(texts, shape), min_count=0).as_py() is False:
        return None
    try:
        return pc.cast(texts, kind)
    except pa.ArrowInvalid:
        return None
