"""Copies of columns that threads of the query make together: rows at places, and columns one after the other.

Arrow makes each by one thread. It goes on doing so where columns are small, or of types that are rare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native as native

Column: TypeAlias = "pa.Array[Any]"

# The stubs' overloads choose by types that are known at run time only.
_pa: Any = pa

_LEAST: Final = 1 << 16
"""Values from which on there is something to share."""
_LARGE: Final = 1 << 20
"""Bytes (`large_memory.hpp`)."""
_FIXED: Final = frozenset(
    kind.id
    for kind in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float32(), pa.float64(), pa.date32(), pa.time64("us"), pa.timestamp("us"), pa.decimal128(1)),
    )
)
_STRINGS: Final = frozenset((pa.large_string().id, pa.large_binary().id))
_PLACES: Final = {pa.int64().id: 8, pa.int32().id: 4}
"""Types of places, and their bytes."""


def gather(columns: Sequence[Column], places: Column) -> list[Column | None] | None:
    """Each column's values at places, null where these are null; None for one that Arrow copies, or for all.

    Raises:
        ValueError: a place is outside.
    """
    width, rows = _PLACES.get(places.type.id), len(places)
    if width is None or rows * len(columns) < _LEAST or not rows or not columns or not len(columns[0]):
        return None
    found: list[Column | None] = [None] * len(columns)
    fixed = [i for i, column in enumerate(columns) if _bits(column)]
    wanted = _parts(places)
    if fixed:
        for i, made in zip(fixed, _gather_fixed([columns[i] for i in fixed], wanted, width), strict=True):
            found[i] = made
    for i, column in enumerate(columns):
        if column.type.id in _STRINGS:
            found[i] = _gather_strings(column, wanted, width)
    return found


def append(columns: Sequence[Column]) -> Column | None:
    """All values of columns of one type; None where Arrow copies them."""
    kind: Any = columns[0].type
    rows = sum(map(len, columns))
    if rows < _LEAST or kind.id not in _FIXED | _STRINGS:
        return None
    held = [column for column in columns if len(column)]
    nulls = sum(column.null_count for column in held)
    bitmap = _bitmap(rows) if nulls else None
    if kind.id in _STRINGS:
        offsets = _allocate(8 * (rows + 1))
        data = native.append_strings([_string_parts(one) for one in held], offsets, bitmap, _allocate)
        return _array(kind, rows, [bitmap, offsets, data], nulls)
    values = _allocate(rows * kind.bit_width // 8)
    native.append_values([_parts(column) for column in held], kind.bit_width, values, bitmap)
    return _array(kind, rows, [bitmap, values], nulls)


def append_numbers(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """All numbers of arrays of one type."""
    rows, kind = sum(map(len, columns)), columns[0].dtype
    if rows < _LEAST or kind.kind not in "biuf" or any(column.dtype != kind for column in columns):
        return np.concatenate(columns)
    found = np.empty(rows, kind)
    parts = [(None, np.ascontiguousarray(column), 0, len(column)) for column in columns]
    native.append_values(parts, 8 * kind.itemsize, found, None)
    return found


def _allocate(size: int) -> pa.Buffer:
    """Room for so many bytes; where it is large, of memory that is kept once it is gone (Arrow's is not)."""
    return pa.allocate_buffer(size) if size < _LARGE else pa.py_buffer(np.empty(size, np.uint8).data)


def _bits(column: Column) -> int:
    """Of each value, or of its place in a dictionary; 0 for other types."""
    kind: Any = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.index_type
    if kind.id in _FIXED:
        return int(kind.bit_width)
    return 1 if pa.types.is_boolean(kind) else 0


def _gather_fixed(columns: Sequence[Column], places: tuple[Any, ...], width: int) -> list[Column]:
    rows = places[3]
    bits = [_bits(column) for column in columns]
    given = [_parts(column) for column in columns]
    bitmaps = [None if places[0] is None and one[0] is None else _bitmap(rows) for one in given]
    values = [_allocate(-(-rows * each // 8)) for each in bits]
    nulls = native.gather_columns(given, bits, places, width, values, bitmaps)
    found = []
    for column, bitmap, buffer, missing in zip(columns, bitmaps, values, nulls, strict=True):
        kind: Any = column.type
        dictionary = pa.types.is_dictionary(kind)
        buffers = [bitmap if missing else None, buffer]
        made = _array(kind.index_type if dictionary else kind, rows, buffers, missing)
        if dictionary:
            values_of: Any = column
            made = _pa.DictionaryArray.from_arrays(
                made, values_of.dictionary, ordered=kind.ordered, safe=False
            )
        found.append(made)
    return found


def _gather_strings(column: Column, places: tuple[Any, ...], width: int) -> Column:
    rows = places[3]
    given = _string_parts(column)
    bitmap = None if places[0] is None and given[0] is None else _bitmap(rows)
    offsets = _allocate(8 * (rows + 1))
    data, nulls = native.gather_strings(given, places, width, offsets, bitmap, _allocate)
    return _array(column.type, rows, [bitmap if nulls else None, offsets, data], nulls)


def _array(kind: pa.DataType, rows: int, buffers: Sequence[pa.Buffer | None], nulls: int) -> Column:
    made: Column = _pa.Array.from_buffers(kind, rows, list(buffers), nulls)
    return made


def _bitmap(rows: int) -> pa.Buffer:
    return _allocate(-(-rows // 8))


def _parts(column: Column) -> tuple[pa.Buffer | None, pa.Buffer | None, int, int]:
    """Bitmap, values, the first row and the number of rows; of a dictionary's places."""
    validity, values = column.buffers()[:2]
    return validity if column.null_count else None, values, column.offset, len(column)


def _string_parts(column: Column) -> tuple[pa.Buffer | None, pa.Buffer | None, pa.Buffer | None, int, int]:
    validity, offsets, data = column.buffers()
    return validity if column.null_count else None, offsets, data, column.offset, len(column)
