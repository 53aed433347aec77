"""Record batches as frames: columns by position, and a row count that survives having no columns."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native as native
from bamquery.engine.cpu.kernels import (
    Column,
    boolean_values,
    booleans,
    compute,
    concatenate,
    convert,
    from_values,
    string_offsets,
    take_present,
    take_rows,
    take_shared,
    valid_rows,
)

_MOST: Final = 0.9
"""Share of rows from which it is cheaper to say which ones are left out."""


_RUN: Final = 2
"""What `order_of_places` says where nothing need be copied."""
_OFFSET: Final = 8
_MOST_LENGTH: Final = (1 << 32) - 1
_WITH_OFFSETS: Final = frozenset((pa.large_string().id, pa.large_binary().id))
_OF_ONE_WIDTH: Final = frozenset(
    kind.id
    for kind in (
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64()),
        *(pa.date32(), pa.time64("us"), pa.timestamp("us"), pa.decimal128(1)),
    )
)
"""Numbers of the types whose columns have a bitmap of nulls and values, and nothing else."""


def make_batch(columns: Sequence[Column], rows: int) -> pa.RecordBatch:
    """A batch whose columns are named by their position."""
    if columns:
        return pa.RecordBatch.from_arrays(list(columns), names=_names(len(columns)))
    return pa.RecordBatch.from_struct_array(pa.nulls(rows, pa.struct([])))


@functools.lru_cache(maxsize=1024)
def _names(count: int) -> list[str]:
    return [str(i) for i in range(count)]


def batch_bytes(batch: pa.RecordBatch) -> int:
    """Bytes of the columns' rows; Arrow says the same, at the price of a small kernel for each column."""
    rows = batch.num_rows
    size = 0
    for column in batch.columns:
        kind = column.type
        if kind.id in _OF_ONE_WIDTH:
            size += -(-rows * kind.bit_width // 8)
            if column.buffers()[0] is not None:
                size += -(-rows // 8)
        else:
            size += column.nbytes
    return size


def concatenate_batches(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Rows of one or more batches of equal types."""
    if len(batches) == 1:
        return batches[0]
    rows = sum(batch.num_rows for batch in batches)
    columns = [concatenate_columns([b.column(i) for b in batches]) for i in range(batches[0].num_columns)]
    return make_batch(columns, rows)


def concatenate_columns(columns: Sequence[Column]) -> Column:
    """Values of one or more arrays; dictionaries are united, under wider indices where they must be."""
    encoded = [isinstance(column, pa.DictionaryArray) for column in columns]
    if not any(encoded):
        return concatenate(columns)
    if not all(encoded):
        return concatenate([decode_dictionary(column) for column in columns])
    wide = pa.dictionary(pa.int32(), columns[0].type.value_type)
    return concatenate([convert(column, wide) for column in columns])


def string_bytes(column: Column) -> int:
    """Bytes of the strings or binaries that are not null, each as often as it stands; 0 for other types."""
    if isinstance(column, pa.DictionaryArray):
        return _dictionary_string_bytes(column)
    if not _has_bytes(column) or not len(column):
        return 0
    if not column.null_count:
        offsets = string_offsets(column)
        return int(offsets[-1] - offsets[0])
    return int(compute("binary_length", column).sum().as_py() or 0)


def _dictionary_string_bytes(column: pa.DictionaryArray[Any, Any]) -> int:
    if not _has_bytes(column.dictionary) or not len(column.dictionary):
        return 0
    lengths = np.diff(string_offsets(column.dictionary))
    if not column.dictionary.null_count and (lengths == lengths[0]).all():  # as those of codes and flags are
        return int(lengths[0]) * (len(column) - column.indices.null_count)
    if column.dictionary.null_count:
        lengths = np.where(boolean_values(compute("is_valid", column.dictionary)), lengths, 0)
    places = column.indices.drop_null()
    return int(np.bincount(places, minlength=len(lengths)) @ lengths)


def value_width(column: Column) -> int:
    """Bytes of one value, of its place in a dictionary, or of a string's offset; of others the mean."""
    kind: Any = column.type
    if kind.id in _OF_ONE_WIDTH:
        return -(-int(kind.bit_width) // 8)
    if pa.types.is_dictionary(kind):
        kind = kind.index_type
    if _has_bytes(column):
        return _OFFSET
    if pa.types.is_null(kind):
        return 0
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        return -(-int(kind.bit_width) // 8)
    return -(-column.nbytes // max(len(column), 1))


def longest_string(columns: Sequence[Column]) -> int:
    """Bytes of the longest string or binary of each column, together."""
    return sum(int(np.diff(string_offsets(c)).max()) for c in columns if _has_bytes(c) and len(c))


def string_lengths(columns: Sequence[Column], rows: int) -> NDArray[np.uint32]:
    """Bytes of each row's strings and binaries, at most 4 GiB."""
    found = np.zeros(rows, np.int64)
    if rows:
        for column in filter(_has_bytes, columns):
            found += np.diff(string_offsets(column))
    return np.minimum(found, _MOST_LENGTH, out=found).astype(np.uint32)


def take_batch(batch: pa.RecordBatch, positions: Column | NDArray[np.int64]) -> pa.RecordBatch:
    """Rows at positions."""
    if not batch.num_columns:
        return make_batch([], len(positions))
    order = native.order_of_places(positions) if isinstance(positions, np.ndarray) else 0
    if order == _RUN and len(positions):
        return batch.slice(int(positions[0]), len(positions))
    if order and isinstance(positions, np.ndarray) and _is_most(len(positions), batch):
        flags = np.zeros(batch.num_rows, np.bool_)
        flags[positions] = True
        mask = booleans(flags)
        # One by one: a batch as a whole would be taken by positions again.
        return make_batch([compute("array_filter", column, mask) for column in batch.columns], len(positions))
    indices: Any = (
        positions
        if isinstance(positions, pa.Array)
        else from_values(positions, pa.from_numpy_dtype(positions.dtype))
    )
    if batch.num_columns == 1:
        return make_batch([take_present(batch.column(0), indices)], len(indices))
    return take_rows(batch, indices)


def _is_most(rows: int, batch: pa.RecordBatch) -> bool:
    """Whether few of the rows are left out, and strings copied in runs: a third of the time."""
    return rows >= _MOST * batch.num_rows and any(map(_has_bytes, batch.columns))


def _has_bytes(column: Column) -> bool:
    return column.type.id in _WITH_OFFSETS


def take_batch_or_null(batch: pa.RecordBatch, positions: NDArray[np.int64]) -> pa.RecordBatch:
    """Rows at positions, nulls where the position is -1."""
    missing = positions < 0
    indices: Any = pa.array(positions, mask=missing) if missing.any() else pa.array(positions)
    return take_batch(batch, indices)


def dictionary_of(column: Column) -> Column:
    """A text column as places in its own values, each row's being its own; others as they are."""
    if not pa.types.is_large_string(column.type):
        return column
    places = from_values(np.arange(len(column)), pa.int32(), valid_rows(column))
    return pa.DictionaryArray.from_arrays(places, column)


def decode_dictionary(column: Column) -> Column:
    """The column with its dictionary values in place, if it has a dictionary."""
    if not pa.types.is_dictionary(column.type):
        return column
    return compute("dictionary_decode", column)


def decode_dictionary_in_room(column: Column) -> Column:
    """The same, where that is not too much.

    Raises:
        LargeStringError: its strings take too much memory.
    """
    return (
        take_shared(column.dictionary, column.indices) if isinstance(column, pa.DictionaryArray) else column
    )


def as_type(column: Column, kind: pa.DataType) -> Column:
    """The column with its dictionary made, unmade or renumbered to be of a type that differs in that only.

    Raises:
        ExecutionError: there are more distinct values than the index type can number.
    """
    if column.type == kind:
        return column
    if pa.types.is_dictionary(kind):
        from bamquery.engine.cpu.casts.cast import to_dictionary  # noqa: PLC0415 (answers rarely want it)

        return to_dictionary(decode_dictionary(column), kind)
    return decode_dictionary(column)
