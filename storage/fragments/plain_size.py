"""How many bytes a column takes as plain Arrow, however it is stored, and as it is stored."""

from __future__ import annotations

import pyarrow as pa

from bamquery.storage.format.storable_types import is_string_like, value_bits
from bamquery.storage.fragments.fragment import Fragment


def string_bytes(fragment: Fragment, index: int) -> int:
    """Bytes of all strings of a column, offsets aside; of dictionaries none, whose rows share them."""
    layout = fragment.layout.columns[index]
    if not is_string_like(fragment.schema.field(index).type):
        return 0
    return layout.values.length if layout.encoding is None else layout.encoding.plain_bytes


def column_bytes(fragment: Fragment, index: int) -> int:
    """Bytes of a column as it lies in memory, dictionary aside."""
    kind: pa.DataType = fragment.schema.field(index).type
    count = fragment.rows + is_string_like(kind)
    nulls = -(-fragment.rows // 8) if fragment.layout.columns[index].has_nulls else 0
    return -(-count * value_bits(kind) // 8) + nulls + string_bytes(fragment, index)


def stored_bytes(fragment: Fragment, index: int) -> int:
    """Bytes of a column as its file holds it, dictionary and parameters aside."""
    return sum(extent.length for extent in fragment.layout.columns[index].buffers)
