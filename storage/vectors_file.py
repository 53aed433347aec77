"""The vectors file: one row a vector, one struct a column, and the layout of the file it describes."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bamquery import _native
from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.array_validation import validate
from bamquery.storage.fragment_entry import FragmentEntry
from bamquery.storage.layout import VECTOR_ROWS, ColumnLayout, FragmentLayout, vector_count
from bamquery.storage.layout_check import require_layout
from bamquery.storage.parts import has_parts, part_types, part_values

_FORMAT: Final = b"2"
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
    path: Path, entry: FragmentEntry, schema: pa.Schema
) -> tuple[FragmentLayout, pa.RecordBatch]:
    """Layout and statistics, compared with what the manifest says before anything is parsed.

    Raises:
        CorruptionError: the file is not the one that was written.
        StorageError: it cannot be read.
    """
    data = _read(path, entry.vectors_bytes)
    found = _native.crc32c(data)
    if found != entry.vectors_crc:
        raise CorruptionError(
            f"its checksum is {found:08x} instead of {entry.vectors_crc:08x}: the file is damaged", path
        )
    try:
        with pa.ipc.open_file(pa.py_buffer(data)) as reader:
            metadata = reader.schema.metadata or {}
            if metadata.get(_FORMAT_KEY) != _FORMAT:
                raise CorruptionError("it is not a vectors file of this version of BamQuery", path)
            written = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(metadata[_SCHEMA_KEY])))
            layout = FragmentLayout.from_json(metadata[_LAYOUT_KEY], path)
            statistics = reader.get_batch(0)
        for column in statistics.columns:
            validate(column)
        if not written.equals(schema):
            raise ValueError("it describes columns of another schema")
        require_layout(layout, schema, entry)
        _require_statistics(statistics, schema, layout, entry.rows)
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise CorruptionError(f"it cannot be read: {error}", path) from error
    return layout, statistics


def _require_statistics(
    statistics: pa.RecordBatch, schema: pa.Schema, layout: FragmentLayout, rows: int
) -> None:
    if statistics.num_rows != vector_count(rows) or statistics.schema.names != schema.names:
        raise ValueError("it describes another fragment")
    column: Any
    for field, column, place in zip(schema, statistics.columns, layout.columns, strict=True):
        value_type: Any = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        wanted = {"min": value_type, "max": value_type, "null_count": pa.uint16(), "values_crc": pa.uint32()}
        if pa.types.is_floating(value_type):
            wanted["nan_count"] = pa.uint16()
        if place.validity is not None:
            wanted["validity_crc"] = pa.uint32()
        if place.offsets is not None:
            wanted["offsets_crc"] = pa.uint32()
        parts = has_parts(field.type)
        if parts:
            wanted |= part_types(field.type)
        found = {child.name: child.type for child in column.type}
        complete = all(column.field(name).null_count == 0 for name in found if name not in {"min", "max"})
        if parts and "part_crc" in found:
            complete = complete and not part_values(column, "part_crc").null_count
        if found != wanted or column.null_count or not complete or not _plausible(column, place, rows):
            raise ValueError(f'the statistics of column "{field.name}" are not as they should be')


def _plausible(column: Any, place: ColumnLayout, rows: int) -> bool:
    """False where a vector claims more nulls or NaNs than it has rows: readers hand these counts to Arrow."""
    missing = column.field("null_count").to_numpy().astype(np.int64)
    if place.validity is None and missing.any():
        return False
    if column.type.get_field_index("nan_count") >= 0:
        missing = missing + column.field("nan_count").to_numpy()
    return bool(
        np.all(missing <= rows - VECTOR_ROWS * np.arange(len(missing))) and np.all(missing <= VECTOR_ROWS)
    )


def _read(path: Path, size: int) -> bytes:
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise CorruptionError("the file is missing", path) from error
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror or error}", path) from error
    if len(data) != size:
        raise CorruptionError(f"{len(data)} bytes instead of {size}", path)
    return data
