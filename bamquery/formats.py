"""Answers as files and streams: CSV, JSON, Markdown, Parquet, Arrow; written batch by batch."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, BinaryIO, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from bamquery.cells import is_number, texts
from bamquery.errors import BamQueryError
from bamquery.naming import unique_names

_LEAST_PLAIN: Final = 1e-6
_FIRST_WITH_EXPONENT: Final = 1e21

Writer: TypeAlias = Callable[[Iterable[pa.RecordBatch], pa.Schema, BinaryIO], int]
"""Writes batches of a schema to a stream; returns the number of rows."""


def write_csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO) -> int:
    """With a header; strings in quotes, so that an empty one differs from NULL, which is nothing at all."""
    from pyarrow import csv as arrow_csv  # noqa: PLC0415 (other formats need none of it)

    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(schema.names)
    out.write(header.getvalue().encode())
    kinds = [_decoded(field.type) if is_number(field.type) else pa.large_string() for field in schema]
    target = pa.schema([pa.field(name, kind) for name, kind in zip(schema.names, kinds, strict=True)])
    options = arrow_csv.WriteOptions(include_header=False, quoting_style="needed")
    rows = 0
    with arrow_csv.CSVWriter(out, target, write_options=options) as writer:
        for batch in batches:
            columns = [_plain(c) if is_number(c.type) else texts(c) for c in batch.columns]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=target))
            rows += batch.num_rows
    return rows


def write_json(batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO) -> int:
    """An array with one object a row and line. NaN and infinities, which JSON has not, become null."""
    names = [json.dumps(name, ensure_ascii=False) for name in unique_names(schema.names)]
    rows = 0
    out.write(b"[")
    for batch in batches:
        columns = [json_values(column) for column in batch.columns]
        for values in zip(*columns, strict=True):
            row = ", ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))
            out.write(f"{',' if rows else ''}\n{{{row}}}".encode())
            rows += 1
    out.write(b"\n]\n" if rows else b"]\n")
    return rows


def write_markdown(batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO) -> int:
    """A pipe table, numbers flush right."""
    rules = ["---:" if is_number(field.type) else ":---" for field in schema]
    out.write(_markdown_line([_escaped(name) for name in schema.names]) + _markdown_line(rules))
    rows = 0
    for batch in batches:
        for values in zip(*(texts(column).to_pylist() for column in batch.columns), strict=True):
            out.write(_markdown_line(["NULL" if v is None else _escaped(v) for v in values]))
            rows += 1
    return rows


def write_parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO) -> int:
    """A Parquet file, compressed with zstd.

    Raises:
        BamQueryError: Parquet has no such type; nothing was run.
    """
    from pyarrow import parquet  # noqa: PLC0415 (other formats need none of it)

    target = parquet_schema(schema)
    with parquet.ParquetWriter(out, target, compression="zstd") as writer:
        return _write_batches(batches, target, writer.write_batch)


def write_arrow_stream(batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO) -> int:
    """An Arrow IPC stream, for pipes."""
    target = plain_schema(schema)
    with ipc.new_stream(_sink(out), target) as writer:
        return _write_batches(batches, target, writer.write_batch)


def write_arrow_file(batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO) -> int:
    """An Arrow IPC file, which readers can map."""
    target = plain_schema(schema)
    with ipc.new_file(_sink(out), target) as writer:
        return _write_batches(batches, target, writer.write_batch)


TEXT_FORMATS: Final[Mapping[str, Writer]] = MappingProxyType(
    {"csv": write_csv, "json": write_json, "markdown": write_markdown}
)
"""Formats of which several answers may follow each other."""


def _write_batches(
    batches: Iterable[pa.RecordBatch], target: pa.Schema, write: Callable[[pa.RecordBatch], Any]
) -> int:
    rows = 0
    for batch in plain_batches(batches, target):
        write(batch)
        rows += batch.num_rows
    return rows


def plain_batches(batches: Iterable[pa.RecordBatch], target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches with a `plain_schema`."""
    for batch in batches:
        yield pa.RecordBatch.from_arrays([_plain(column) for column in batch.columns], schema=target)


def _sink(out: BinaryIO) -> Any:
    """The stream, past stubs that only know classes of `io`."""
    return out


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Without dictionaries, which may differ from batch to batch, and with every name once."""
    names = unique_names(schema.names)
    return pa.schema([pa.field(n, _decoded(f.type)) for n, f in zip(names, schema, strict=True)])


def parquet_schema(schema: pa.Schema) -> pa.Schema:
    """The plain schema, if a Parquet file can have it.

    Raises:
        BamQueryError: a column is an INTERVAL; says which.
    """
    for field in schema:
        if pa.types.is_interval(field.type):
            raise BamQueryError(
                f'column "{field.name}" is an INTERVAL, and Parquet files are written without: '
                "cast it to VARCHAR"
            )
    return plain_schema(schema)


def _decoded(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _plain(column: pa.Array[Any]) -> pa.Array[Any]:
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def json_values(column: pa.Array[Any]) -> list[str]:
    """Each value as JSON; NaN and infinities, which JSON has not, as null."""
    column = _plain(column)
    if pa.types.is_floating(column.type):
        return ["null" if v is None else _json_number(v) for v in column.to_pylist()]
    values = texts(column).to_pylist()
    if is_number(column.type) or pa.types.is_boolean(column.type):
        return ["null" if value is None else value for value in values]
    return ["null" if value is None else json.dumps(value, ensure_ascii=False) for value in values]


def _json_number(value: float) -> str:
    """As DuckDB and JavaScript write it: no exponent from 1e-6 to 1e21, but always a point or an exponent."""
    if not math.isfinite(value):
        return "null"
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return text
    if _LEAST_PLAIN <= abs(value) < _FIRST_WITH_EXPONENT:
        return np.format_float_positional(value, trim="0")
    return f"{mantissa}e{int(exponent)}"


def _markdown_line(cells: Iterable[str]) -> bytes:
    return f"| {' | '.join(cells)} |\n".encode()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\r\n", "<br>").replace("\n", "<br>")
