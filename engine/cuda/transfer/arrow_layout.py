"""Arrow arrays in the layouts that libcudf has too, and back; nothing is copied unless said.

This is the host's part of a copy, and needs no GPU.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa

from bamquery.data_types.type_groups import value_type
from bamquery.engine.formulas.dictionaries import with_index_type

Array: TypeAlias = "pa.Array[Any]"


def to_libcudf_layout(array: Array) -> Array:
    """A column (not of dictionaries) as libcudf takes it: times as integers, bytes as strings.

    Bits must begin with a byte: libcudf 26.10 copies one byte more than it has room for where they do not and
    the rows fill its words.
    """
    if array.offset % 8 and (array.null_count or pa.types.is_boolean(array.type)):
        array = pa.concat_arrays([array])  # copied, from its first row on
    kind: Any = array.type
    if pa.types.is_null(kind):
        return pa.nulls(len(array), pa.int8())
    if pa.types.is_time64(kind):
        return array.view(pa.int64())
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return array.view(pa.timestamp(kind.unit))
    if pa.types.is_large_binary(kind):
        return reinterpret(array, pa.large_string())
    return array


def from_libcudf_layout(array: Array, kind: pa.DataType) -> Array:
    """What libcudf gave for a column of type `kind`, as exactly that type; dictionaries are made here.

    Raises:
        ExecutionError: there are more distinct values than a dictionary's index type can number.
    """
    plain = value_type(kind)
    if array.type != plain:
        array = _to_plain_layout(array, plain)
    return array if plain == kind else with_index_type(array.dictionary_encode(), kind)


def _to_plain_layout(array: Array, kind: Any) -> Array:
    if pa.types.is_null(kind):
        return pa.nulls(len(array))
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        # libcudf's offsets have 32 bits where these are enough: they are widened, the bytes stay.
        return reinterpret(array.cast(pa.large_string()), kind)
    return reinterpret(array, kind)


def reinterpret(array: Array, kind: pa.DataType) -> Array:
    """The same buffers under a type of the same layout."""
    if array.type == kind:
        return array
    buffers: Any = array.buffers()
    found: Array = pa.Array.from_buffers(kind, len(array), buffers, array.null_count, array.offset)
    return found
