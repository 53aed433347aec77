"""Whether a buffer layout can be that of a fragment, so that reading by it stays within the file."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.format.layout import ALIGNMENT, ColumnLayout, Extent, FragmentLayout
from bamquery.storage.format.storable_types import is_string_like, value_bits


def require_layout(layout: FragmentLayout, schema: pa.Schema, entry: FragmentEntry) -> None:
    """Compare the layout with the schema and the sizes that the manifest gives.

    Raises:
        ValueError: they do not go together.
    """
    if layout.rows != entry.rows or len(layout.columns) != len(schema):
        raise ValueError("its layout is that of another fragment")
    for extent, _ in layout.metadata:
        _require(extent.end <= entry.data_bytes, "metadata")
    for field, column in zip(schema, layout.columns, strict=True):
        for extent in column.extents:
            aligned = extent.offset % ALIGNMENT == 0
            _require(aligned and extent.end <= entry.data_bytes, f'column "{field.name}"')
        _require(_fits(field.type, column, entry.rows), f'column "{field.name}"')


def _fits(type_: Any, column: ColumnLayout, rows: int) -> bool:
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
