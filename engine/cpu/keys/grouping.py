"""Rows to groups: equal keys get one number, dense and in order of first appearance.

Nulls are equal to each other, NaNs too, and -0.0 to 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bamquery.engine.cpu.kernels import (
    Column,
    any_true,
    boolean_values,
    compute,
    constant,
    from_values,
    stored_values,
    take,
    take_shared,
    valid_rows,
    where,
)

_SPARSEST = 32
"""Table entries for each row up to which a table beats hashing, which it does fourfold where it is dense."""
_HEAD, _MANY_TIMES = 4096, 4
"""Rows that are looked at first, and how many times as many make that worth it."""
_FEW = 8
"""Of rows looked at first, how many there are for each different value where it is one of few."""
_SMALL_TABLE, _LARGE_TABLE = 1 << 16, 1 << 24
"""Entries that are always worth it, and that never are: 64 MiB."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which group each row is in.

    Attributes:
        codes: group number of each row.
        groups: how many there are.
        keys: for each key column, its value in each group; dictionaries are decoded.
    """

    codes: NDArray[Any]
    groups: int
    keys: tuple[Column, ...]


def group_rows(keys: Sequence[Column], rows: int) -> Grouping:
    """Number the rows by their keys; without keys all rows, even none, are one group.

    Raises:
        LargeStringError: strings that groups share in a dictionary take too much memory beside each of them.
    """
    if not keys:
        return Grouping(np.broadcast_to(np.int64(0), rows), 1, ())
    codes, values = _encode(keys[0])
    key_codes = [np.arange(len(values))]
    key_values = [values]
    for key in keys[1:]:
        next_codes, next_values = _encode(key)
        codes, distinct_pairs = _encode_pairs(codes, len(key_codes[0]), next_codes, len(next_values))
        before, last = np.divmod(distinct_pairs, max(len(next_values), 1))
        key_codes = [earlier[before] for earlier in key_codes] + [last]
        key_values.append(next_values)
    groups = len(key_codes[0])
    taken = tuple(
        (take_shared if isinstance(key, pa.DictionaryArray) else take)(values, positions)
        for key, values, positions in zip(keys, key_values, key_codes, strict=True)
    )
    return Grouping(codes, groups, taken)


def _encode_pairs(
    codes: NDArray[Any], count: int, next_codes: NDArray[Any], next_count: int
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """A number for each pair of codes below the counts; of each number one * `next_count` + the other."""
    if count * next_count <= _SMALL_TABLE:
        pairs = codes * np.int32(next_count) + next_codes
        numbers, leaders = _encode_slots(pairs, count * next_count)
        return numbers, pairs[leaders].astype(np.int64)
    # Both codes are below 2**31, so a pair of them fits 64 bits.
    pairs = codes.astype(np.int64) * max(next_count, 1) + next_codes
    found, distinct = _encode(from_values(pairs, pa.int64()))
    return found, stored_values(distinct)


def _encode(column: Column) -> tuple[NDArray[Any], Column]:
    """A number for each row, and the values by number."""
    if isinstance(column, pa.DictionaryArray):
        return _encode_dictionary(column)
    if pa.types.is_integer(column.type) or pa.types.is_temporal(column.type):
        encoded = _encode_near(column)
        if encoded is not None:
            return encoded
    if pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type):
        bytes_ = _single_bytes(column)
        if bytes_ is not None:
            codes, first = _encode_slots(bytes_, 256)
            return codes, take(column, first)
    options = pc.DictionaryEncodeOptions("encode")
    hashed = compute("dictionary_encode", canonical(column), options=options)
    assert isinstance(hashed, pa.DictionaryArray)
    return stored_values(hashed.indices), hashed.dictionary


def _encode_near(column: Column) -> tuple[NDArray[Any], Column] | None:
    """For integers that are close to each other, tables by value take the place of hashing; None if not."""
    rows = len(column)
    values = stored_values(column)
    stored = column
    if pa.types.is_temporal(column.type):
        stored = column.view(pa.int32() if values.itemsize == 4 else pa.int64())
    bounds: Any = pc.min_max(stored)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is None or high - low >= max(min(_SPARSEST * rows, _LARGE_TABLE), _SMALL_TABLE):
        return None
    present = valid_rows(column)
    # In 64 bits, where the largest unsigned numbers wrap, their lowest too.
    slots = values.astype(np.int64, copy=False) - values.dtype.type(low).astype(np.int64)
    null_slot = high - low + 1
    if present is not None:
        slots = np.where(boolean_values(present), slots, null_slot)
    codes, leaders = _encode_slots(slots, null_slot + 1)
    return codes, take(column, leaders)


def _single_bytes(column: Column) -> NDArray[np.uint8] | None:
    """The bytes of strings of one byte each, as flags and grades are; None where one is null or different."""
    rows = len(column)
    _, offsets_buffer, data_buffer = column.buffers()
    if not rows or column.null_count or offsets_buffer is None or data_buffer is None:
        return None
    offsets = np.frombuffer(memoryview(offsets_buffer), np.int64, rows + 1, 8 * column.offset)
    first = int(offsets[0])
    if int(offsets[-1]) - first != rows or not (offsets[1:] - offsets[:-1] == 1).all():
        return None
    return np.frombuffer(memoryview(data_buffer), np.uint8, rows, first)


def _encode_slots(slots: NDArray[Any], count: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Numbers for places below `count`, and the first row of each number."""
    table = np.full(count, -1, np.int32)
    rows = len(slots)
    few = rows >= _MANY_TIMES * _HEAD
    if few:
        # Most columns that are grouped by show their values early: the other rows are looked up only.
        leaders = _leaders(slots[:_HEAD], table)
        few = len(leaders) * _FEW <= _HEAD
    if not few:
        leaders = _leaders(slots, table)
        return table[slots], leaders
    codes = table[slots]
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        more = unknown[_leaders(slots[unknown], table, len(leaders))]
        codes[unknown] = table[slots[unknown]]
        leaders = np.concatenate([leaders, more])
    return codes, leaders


def _leaders(slots: NDArray[Any], table: NDArray[np.int32], begin: int = 0) -> NDArray[np.int64]:
    """The first row of each place, in ascending order; the table gets their numbers, from `begin` on."""
    positions = np.arange(len(slots), dtype=np.int32)
    table[slots[::-1]] = positions[::-1]  # of several writes to a place the last one stays
    leaders = np.flatnonzero(table[slots] == positions)
    table[slots[leaders]] = np.arange(begin, begin + len(leaders), dtype=np.int32)
    return leaders


def _encode_dictionary(column: pa.DictionaryArray[Any, Any]) -> tuple[NDArray[Any], Column]:
    """Through the dictionary's values, which may repeat, be null, or be used by no row."""
    value_codes, values = _encode(column.dictionary)
    if len(values) == len(column.dictionary) and not (values.null_count and column.indices.null_count):
        codes, used = _encode(column.indices)  # as many different values as places
        return codes, take(column.dictionary, used)
    rows = take(from_values(value_codes, pa.int32()), column.indices)
    codes, used = _encode(rows)
    return codes, take(values, used)


def canonical(column: Column) -> Column:
    """The column with one NaN and one zero for all, so that equal keys have equal bits."""
    if not pa.types.is_floating(column.type):
        return column
    unsigned = from_values(stored_values(column) + 0.0, column.type, valid_rows(column))
    not_a_number = compute("is_nan", unsigned)
    if not any_true(not_a_number):
        return unsigned
    return where(not_a_number, constant(float("nan"), column.type), unsigned)
