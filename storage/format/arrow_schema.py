"""File one in Arrow's words: its schema, the nodes of its columns and their buffers.

Where no column is encoded a row is a row. Where one is, a row is a vector: a plain column is a list of values
for each, an encoded one the bytes of its payload, under an extension type; beside the codes of a dictionary
stand its values, all of them in the first vector's list.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from bamquery.storage.format.arrow_ipc import Batch, record_batch_message, schema_message
from bamquery.storage.format.layout import (
    ColumnLayout,
    DictionaryLayout,
    Extent,
    FragmentLayout,
    PackedLayout,
    vector_count,
)
from bamquery.storage.format.storable_types import stored_index

EXTENSION_NAME: Final = "bamquery.packed"
_VERSION: Final = 1
_NAME_KEY: Final = b"ARROW:extension:name"
_METADATA_KEY: Final = b"ARROW:extension:metadata"
_NOWHERE: Final = Extent(0, 0)
_WIDEST: Final = PackedLayout(
    (1 << 63) - 1, (1 << 64) - 1, has_nulls=True, cells=_NOWHERE, lists=_NOWHERE, symbols=b"\0"
)
"""Its metadata are as long as any."""


@dataclass(frozen=True)
class ArrowColumn:
    """A column as file one has it: its field, nodes and buffers, in Arrow's order."""

    field: pa.Field[Any]
    nodes: tuple[tuple[int, int], ...]
    buffers: tuple[Extent | None, ...]


def stored_schema(schema: pa.Schema, layout: FragmentLayout) -> pa.Schema:
    """The schema of file one; `schema` is the fragment's."""
    if not layout.is_encoded:
        return schema
    return pa.schema(
        [
            arrow_column(field, column, layout, 0).field
            for field, column in zip(schema, layout.columns, strict=True)
        ]
    )


def record_batch(
    schema: pa.Schema, layout: FragmentLayout, null_counts: Sequence[int], body: Extent
) -> Batch:
    """File one's only batch, whose body is at `body`."""
    columns = [
        arrow_column(field, column, layout, null_count)
        for field, column, null_count in zip(schema, layout.columns, null_counts, strict=True)
    ]
    return Batch(
        vector_count(layout.rows) if layout.is_encoded else layout.rows,
        [node for column in columns for node in column.nodes],
        [_relative(extent, body.offset) for column in columns for extent in column.buffers],
        body.length,
    )


def arrow_column(
    field: pa.Field[Any], column: ColumnLayout, layout: FragmentLayout, null_count: int
) -> ArrowColumn:
    """One column."""
    if column.encoding is not None:
        return _packed_column(field, column, vector_count(layout.rows))
    own = _value_buffers(column.validity, column.offsets, column.values)
    if not layout.is_encoded:
        return ArrowColumn(field, ((layout.rows, null_count),), own)
    nodes = ((vector_count(layout.rows), 0), (layout.rows, null_count))
    return ArrowColumn(_list_field(field.name, field.type), nodes, (None, layout.lists, *own))


def reserved_bytes(schema: pa.Schema) -> int:
    """How many bytes schema and batch message take at most, whichever columns are encoded."""
    choices = [list(_choices(field)) for field in schema]
    said = sum(max(len(schema_message(pa.schema([one.field]))) for one in column) for column in choices)
    nodes = sum(max(len(one.nodes) for one in column) for column in choices)
    buffers = sum(max(len(one.buffers) for one in column) for column in choices)
    batch = Batch(0, [(0, 0)] * nodes, [_NOWHERE] * buffers, 0)
    return said + len(record_batch_message(batch, 0))


def _choices(field: pa.Field[Any]) -> Iterable[ArrowColumn]:
    everywhere = ColumnLayout(_NOWHERE, _NOWHERE, _NOWHERE)
    dictionary = DictionaryLayout(0, _NOWHERE, _NOWHERE, 0, 0)
    layout = FragmentLayout(0, (ColumnLayout(None, None, _NOWHERE, None, _WIDEST),), (), lists=_NOWHERE)
    if not pa.types.is_dictionary(field.type):
        yield arrow_column(field, everywhere, layout, 0)
        yield _packed_column(field, ColumnLayout(None, None, _NOWHERE, None, _WIDEST), 0)
    yield _packed_column(field, ColumnLayout(None, None, _NOWHERE, dictionary, _WIDEST), 0)


def _packed_column(field: pa.Field[Any], column: ColumnLayout, vectors: int) -> ArrowColumn:
    encoding, dictionary = column.encoding, column.dictionary
    assert encoding is not None
    type_ = stored_index(field.type, has_dictionary=dictionary is not None)
    cells = (None, encoding.cells, column.values)
    if dictionary is None:
        return ArrowColumn(_packed_field(field.name, type_, encoding), ((vectors, 0),), cells)
    value_type: Any = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    both = pa.struct([_packed_field("codes", type_, encoding), _list_field("values", value_type)])
    values = _value_buffers(None, dictionary.offsets, dictionary.values)
    return ArrowColumn(
        pa.field(field.name, both),
        ((vectors, 0), (vectors, 0), (vectors, 0), (dictionary.size, 0)),
        (None, *cells, None, encoding.lists, *values),
    )


def _packed_field(name: str, type_: Any, encoding: PackedLayout) -> pa.Field[Any]:
    members = {
        "version": _VERSION,
        "type": str(type_),
        "divisor": encoding.divisor,
        "origin": encoding.origin,
    }
    if encoding.symbols is not None:
        members["encoding"] = "fsst"
    metadata = {_NAME_KEY: EXTENSION_NAME.encode(), _METADATA_KEY: json.dumps(members).encode()}
    return pa.field(name, pa.large_binary(), metadata=metadata)


def _list_field(name: str, type_: Any) -> pa.Field[Any]:
    return pa.field(name, pa.large_list(pa.field("item", type_)))


def _value_buffers(
    validity: Extent | None, offsets: Extent | None, values: Extent
) -> tuple[Extent | None, ...]:
    return (validity, values) if offsets is None else (validity, offsets, values)


def _relative(extent: Extent | None, body: int) -> Extent:
    """A buffer that is not there is an empty one."""
    return _NOWHERE if extent is None else Extent(extent.offset - body, extent.length)
