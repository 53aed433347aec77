"""Key columns as kernels of engine/kernels/keys take them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import pylibcudf as plc
from pylibcudf.types import TypeId

MOST_KEYS: Final = 16
_COLUMN: Final = struct.Struct("<QQQQII")
"""A `KeyColumn` of key_columns.hpp: values, offsets, valid, first_bit, width."""
_COUNT: Final = struct.Struct("<Q")


def pack_column(column: plc.Column) -> bytes:
    """A `KeyColumn`: strings, or values of at most 16 bytes."""
    mask = column.null_mask() if column.null_count() else None
    valid = 0 if mask is None else int(mask.ptr)
    data, first = column.data(), column.offset()
    values = 0 if data is None else int(data.ptr)
    if column.type().id() != TypeId.STRING:
        width = plc.types.size_of(column.type())
        return _COLUMN.pack(values + first * width, 0, valid, first, width, 0)
    if not column.num_children():  # libcudf's strings of no rows
        return _COLUMN.pack(values, 0, valid, first, 0, 0)
    offsets = column.child(0)
    places = offsets.data()
    width = plc.types.size_of(offsets.type())
    begin = 0 if places is None else int(places.ptr) + width * (offsets.offset() + first)
    return _COLUMN.pack(values, begin, valid, first, width, 0)


def pack_columns(columns: Sequence[plc.Column]) -> bytes:
    """A `KeyColumns` of at most 16."""
    packed = b"".join(map(pack_column, columns))
    return packed.ljust(MOST_KEYS * _COLUMN.size, b"\0") + _COUNT.pack(len(columns))
