"""The vectors file: one row a vector, one struct a column, and the layout of the file it describes."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from bamquery import _native
from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.layout import FragmentLayout, vector_count

_FORMAT: Final = b"1"
_FORMAT_KEY: Final = b"bamquery.vectors"
_LAYOUT_KEY: Final = b"bamquery.layout"
_SCHEMA_KEY: Final = b"bamquery.schema"


def vectors_file(schema: pa.Schema, layout: FragmentLayout, statistics: list[pa.StructArray]) -> pa.Buffer:
    """The whole file, ready to be written."""
    metadata: dict[bytes | str, bytes | str] = {
        _FORMAT_KEY: _FORMAT,
        _LAYOUT_KEY: layout.to_json().encode(),
        _SCHEMA_KEY: base64.b64encode(schema.serialize()),
    }
    fields = [pa.field(f.name, s.type) for f, s in zip(schema, statistics, strict=True)]
    batch = pa.RecordBatch.from_arrays(statistics, schema=pa.schema(fields, metadata))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def read_vectors_file(
    path: Path, size: int, crc: int, schema: pa.Schema, rows: int
) -> tuple[FragmentLayout, pa.RecordBatch]:
    """Layout and statistics, checked against what the manifest says before anything is parsed.

    Raises:
        CorruptionError: the file is not the one that was written.
        StorageError: it cannot be read.
    """
    data = _read(path, size)
    found = _native.crc32c(data)
    if found != crc:
        raise CorruptionError(f"checksum {found:08x} instead of {crc:08x}: the file is damaged", path)
    try:
        with pa.ipc.open_file(pa.py_buffer(data)) as reader:
            metadata = reader.schema.metadata or {}
            if metadata.get(_FORMAT_KEY) != _FORMAT:
                raise CorruptionError("not a vectors file of this version of BamQuery", path)
            written = _schema(metadata[_SCHEMA_KEY])
            layout = FragmentLayout.from_json(metadata[_LAYOUT_KEY], path)
            batch = reader.get_batch(0)
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise CorruptionError(f"cannot be read: {error}", path) from error
    if not written.equals(schema) or layout.rows != rows or batch.num_rows != vector_count(rows):
        raise CorruptionError("it describes another fragment", path)
    return layout, batch


def _schema(encoded: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(encoded)))


def _read(path: Path, size: int) -> Any:
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise CorruptionError("the file is missing", path) from error
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror or error}", path) from error
    if len(data) != size:
        raise CorruptionError(f"{len(data)} bytes instead of {size}", path)
    return data
