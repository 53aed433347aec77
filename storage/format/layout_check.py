"""Whether a buffer layout can be that of a fragment, so that reading by it stays within the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from bamquery.errors import CorruptionError
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.format.layout import (
    ALIGNMENT,
    CELLS_ALIGNMENT,
    ColumnLayout,
    Extent,
    FragmentLayout,
    vector_count,
)
from bamquery.storage.format.lazy_sequence import LazySequence
from bamquery.storage.format.storable_types import is_packable, is_string_like, value_bits


def require_layout(
    layout: FragmentLayout, schema: pa.Schema, entry: FragmentEntry, path: Path
) -> FragmentLayout:
    """The layout, compared with the schema and the sizes that the manifest gives; a column when asked for.

    `path` is named where a column is a CorruptionError.

    Raises:
        ValueError: they do not go together.
    """
    if layout.rows != entry.rows or len(layout.columns) != len(schema):
        raise ValueError("its layout is that of another fragment")
    for extent, _ in layout.metadata:
        _require(extent.end <= entry.data_bytes, "metadata")
    if layout.lists is not None:
        _require(_aligned_inside(layout.lists, entry, CELLS_ALIGNMENT), "lists")
        _require(layout.lists.length == _cells_bytes(entry.rows), "lists")

    def column(position: int) -> ColumnLayout:
        found = layout.columns[position]
        try:
            _require_column(found, schema.field(position), entry)
        except ValueError as error:
            raise CorruptionError(f"it cannot be read: {error}", path) from error
        return found

    return replace(layout, columns=LazySequence(len(schema), column))


def _require_column(column: ColumnLayout, field: Any, entry: FragmentEntry) -> None:
    inside = all(_aligned_inside(extent, entry) for extent in column.buffers)
    inside &= all(_aligned_inside(extent, entry, CELLS_ALIGNMENT) for extent in column.ends)
    fits = _plain_fits if column.encoding is None else _packed_fits
    _require(inside and fits(field.type, column, entry.rows), f'column "{field.name}"')


def _aligned_inside(extent: Extent, entry: FragmentEntry, alignment: int = ALIGNMENT) -> bool:
    return extent.offset % alignment == 0 and extent.end <= entry.data_bytes


def _packed_fits(type_: Any, column: ColumnLayout, rows: int) -> bool:
    """A single row is read as 8 bytes: so many follow on the last payload, as zeros within the file."""
    encoding, dictionary = column.encoding, column.dictionary
    assert encoding is not None
    compressed = encoding.symbols is not None
    if compressed and (dictionary is not None or not is_string_like(type_)):
        return False
    if not compressed and not is_packable(type_, has_dictionary=dictionary is not None):
        return False
    if column.validity is not None or column.offsets is not None or column.values.length % 16:
        return False
    if encoding.cells.length != _cells_bytes(rows):
        return False
    if dictionary is None:
        return encoding.lists is None and (compressed or not encoding.plain_bytes)
    value_type = type_.value_type if pa.types.is_dictionary(type_) else type_
    return (
        encoding.lists is not None
        and encoding.lists.length == _cells_bytes(rows)
        and _buffers_fit(value_type, dictionary.size, dictionary.offsets, dictionary.values)
    )


def _cells_bytes(rows: int) -> int:
    return 8 * (vector_count(rows) + 1)


def _plain_fits(type_: Any, column: ColumnLayout, rows: int) -> bool:
    dictionary = column.dictionary
    if pa.types.is_dictionary(type_) != (dictionary is not None):
        return False
    if dictionary is not None and not _buffers_fit(
        type_.value_type, dictionary.size, dictionary.offsets, dictionary.values
    ):
        return False
    if column.validity is not None and column.validity.length != -(-rows // 8):
        return False
    return _buffers_fit(
        type_.index_type if dictionary is not None else type_, rows, column.offsets, column.values
    )


def _buffers_fit(type_: pa.DataType, rows: int, offsets: Extent | None, values: Extent) -> bool:
    if is_string_like(type_):
        return offsets is not None and offsets.length == 8 * (rows + 1)
    return offsets is None and values.length == -(-rows * value_bits(type_) // 8)


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(f"its layout of {what} does not fit the file")
