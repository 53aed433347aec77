"""Parquet and Arrow IPC, written batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import ipc

from bamquery.output.arrow_batches import parquet_schema, plain_batches, plain_schema


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


def _write_batches(
    batches: Iterable[pa.RecordBatch], target: pa.Schema, write: Callable[[pa.RecordBatch], Any]
) -> int:
    rows = 0
    for batch in plain_batches(batches, target):
        write(batch)
        rows += batch.num_rows
    return rows


def _sink(out: BinaryIO) -> Any:
    """The stream, past stubs that only know classes of `io`."""
    return out
