"""COPY TO: the rows of a query in one file, or in files of folders, as its options say."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Final

import pyarrow as pa
from pyarrow import ipc, parquet

from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.output.arrow_batches import parquet_schema, plain_batches, plain_schema
from bamquery.output.atomic_file import whole_file
from bamquery.output.csv_text import Punctuation, csv_lines
from bamquery.output.json_text import json_values
from bamquery.plan.bound_statements import CopyTo
from bamquery.plan.nodes import Plan
from bamquery.session.progress.observers import batches_with_progress
from bamquery.session.session import Session
from bamquery.sql_frontend.binder.file_options import CSV_MARKS
from bamquery.statements.partitioned_files import file_schema, write_partitions
from bamquery.text.identifiers import fold_case, unique_names

_SUFFIX_CODECS: Final = {".gz": "gzip", ".zst": "zstd"}
_Options = Mapping[str, Any]
_Batches = Iterable[pa.RecordBatch]
_Writer = Callable[[_Batches, pa.Schema, BinaryIO, _Options], int]


def copy_to(session: Session, statement: CopyTo, plan: Plan) -> tuple[int, QueryProfile]:
    """Run the plan and write its rows; the file is there once all of it is. Returns how many rows.

    Files of several folders are there once all of them are, but for the moment in which they get their names.

    Raises:
        AccessError: the file is not to be written.
        StorageError: the file cannot be written. BamQueryError: the query failed, or Parquet has no
            such type; there is no file then, or still the one that was there.
    """
    options = dict(statement.options)
    path = Path(os.path.expanduser(statement.path))  # a home that nobody has stays as it is written
    partitioning = statement.partitioning
    fields = pa.schema([pa.field(field.name, field.type) for field in plan.fields])
    if partitioning is not None:
        fields = file_schema(fields, partitioning)
    if statement.format == "parquet":
        parquet_schema(fields)
    if partitioning is not None:
        write = _WRITERS[statement.format]

        def writer(path: Path, file: BinaryIO, batches: _Batches) -> int:
            return write(batches, fields, file, {"path": path, **options})

        with session.run(plan) as result:
            batches = batches_with_progress(result, f"Writing {path}")
            rows = write_partitions(batches, path, partitioning, writer, session.settings.file_access)
        return rows, result.profile
    with (
        session.settings.file_access.target(path) as target,
        session.run(plan) as result,
        whole_file(target, path) as file,
    ):
        batches = batches_with_progress(result, f"Writing {path}")
        rows = _WRITERS[statement.format](batches, result.schema, file, {"path": path, **options})
    return rows, result.profile


def _write_csv(batches: _Batches, schema: pa.Schema, out: BinaryIO, options: _Options) -> int:
    how = Punctuation(**{name: options.get(name, default) for name, default in CSV_MARKS.items()})
    forced = {fold_case(name) for name in options.get("force_quote", ())}
    quoted = ["*" in forced or fold_case(name) in forced for name in unique_names(schema.names)]
    rows = 0
    with ExitStack() as stack:
        stream = _open_compressor(out, options, stack)
        headers = options.get("header", True)
        for number, lines in csv_lines(batches, schema, how, headers=headers, quoted=quoted):
            stream.write(lines)
            rows += number
    return rows


def _write_json(batches: _Batches, schema: pa.Schema, out: BinaryIO, options: _Options) -> int:
    array = options.get("array", False)
    names = [text + ":" for text in json_values(pa.array(unique_names(schema.names), pa.large_string()))]
    rows = 0
    with ExitStack() as stack:
        stream = _open_compressor(out, options, stack)
        if array:
            stream.write(b"[")
        for batch in batches:
            columns = [json_values(column) for column in batch.columns]
            lines = [
                "{" + ",".join(map("".join, zip(names, values, strict=True))) + "}"
                for values in zip(*columns, strict=True)
            ]
            if array:
                lead = ",\n\t" if rows else "\n\t"
                stream.write((lead + ",\n\t".join(lines)).encode() if lines else b"")
            else:
                stream.write(("\n".join(lines) + "\n").encode() if lines else b"")
            rows += batch.num_rows
        if array:
            stream.write(b"\n]\n")
    return rows


def _write_parquet(batches: _Batches, schema: pa.Schema, out: BinaryIO, options: _Options) -> int:
    target = parquet_schema(schema)
    compression = options.get("compression", "zstd")
    codec: Any = {"uncompressed": "none", "lz4_raw": "lz4"}.get(compression, compression)
    size = options.get("row_group_size")
    rows = 0
    with parquet.ParquetWriter(
        out, target, compression=codec, compression_level=options.get("compression_level")
    ) as writer:
        for batch in plain_batches(batches, target):
            writer.write_batch(batch, size or None)
            rows += batch.num_rows
    return rows


def _write_arrow(batches: _Batches, schema: pa.Schema, out: BinaryIO, options: _Options) -> int:
    target = plain_schema(schema)
    codec = options.get("compression", "none")
    write_options = ipc.IpcWriteOptions(compression=None if codec == "none" else codec)
    sink: Any = out
    rows = 0
    with ipc.new_file(sink, target, options=write_options) as writer:
        for batch in plain_batches(batches, target):
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _open_compressor(out: BinaryIO, options: _Options, stack: ExitStack) -> Any:
    """The stream, or one that compresses on its way there; by the path's suffix where nothing is said."""
    codec = options.get("compression", "auto")
    if codec == "auto":
        codec = _SUFFIX_CODECS.get(options["path"].suffix.lower(), "none")
    return (
        out
        if codec == "none"
        else stack.enter_context(pa.CompressedOutputStream(_KeptOpenStream(out), codec))
    )


class _KeptOpenStream(io.RawIOBase):
    """A stream that stays open when who writes to it closes it."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, data: Any) -> int:
        """Pass it on."""
        return self._out.write(data)


_WRITERS: Final[Mapping[str, _Writer]] = MappingProxyType(
    {"csv": _write_csv, "json": _write_json, "parquet": _write_parquet, "arrow": _write_arrow}
)
