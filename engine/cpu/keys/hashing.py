"""Hashes of keys: equal keys have equal hashes, in every frame and state of a query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native as native
from bamquery.engine.cpu.kernels import Column, validity
from bamquery.engine.cpu.keys.key_words import KeyWords, canonical, key_words

Hashes = NDArray[np.uint64]


def hash_rows(columns: Sequence[Column], rows: int) -> Hashes:
    """One hash a row of the columns, dictionaries decoded; nulls count as values."""
    if not columns:
        return np.zeros(rows, np.uint64)
    return native.hash_rows([_hashed_words(canonical(column)) for column in columns])


def partition_rows(
    columns: Sequence[Column], rows: int, count: int, level: int
) -> tuple[NDArray[np.int64], list[int]]:
    """Rows by bits of the keys' hashes, a byte for each level: their order, and where each part ends."""
    order, ends = native.partition_rows(hash_rows(columns, rows), 56 - 8 * level, count)
    return order, ends.tolist()


def _hashed_words(column: Column) -> KeyWords:
    """What the hash of a row is made of."""
    words = key_words(column)
    if words is not None:
        return words
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.uint8), pa.py_buffer(bytes(-(-len(column) // 8))), 0
    return string_words(column)


def string_words(column: Column) -> KeyWords:
    """Hashes of strings in place of them: equal strings have equal ones."""
    return (_hash_bytes(column), *validity(column))


def _hash_bytes(column: Column) -> Hashes:
    """Of a string's length and up to eight words of eight bytes, spread over it: all of it up to 64 bytes.

    Longer strings that differ between those words only share a hash: that costs time, not rightness.
    """
    _, offsets, data = column.buffers()
    rows = len(column)
    if offsets is None or data is None or not data.size:
        return np.zeros(rows, np.uint64)
    return native.hash_strings(
        np.frombuffer(memoryview(offsets), np.int64, rows + 1, 8 * column.offset), data
    )
