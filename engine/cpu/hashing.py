"""Hashes of keys: equal keys have equal hashes, in every frame and state of a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu import decimals
from bamquery.engine.cpu.grouping import canonical
from bamquery.engine.cpu.kernels import Column, booleans_of, valid, values_of

Hashes = NDArray[np.uint64]

_NULL = np.uint64(0x9E3779B97F4A7C15)


def hash_rows(columns: Sequence[Column], rows: int) -> Hashes:
    """One hash a row of the columns, dictionaries decoded; nulls count as values."""
    hashes = np.zeros(rows, np.uint64)
    for column in columns:
        present = valid(column)
        own = _hash_values(column)
        if present is not None:
            own = np.where(booleans_of(present), own, _NULL)
        hashes = _mixed(hashes * np.uint64(31) + own)
    return hashes


def _mixed(words: Hashes) -> Hashes:
    """The finalizer of splitmix64: every bit of the result depends on every bit given."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _hash_values(column: Column) -> Hashes:
    kind = column.type
    if pa.types.is_boolean(kind):
        return booleans_of(column).astype(np.uint64)
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.uint64)
    if pa.types.is_decimal(kind):
        words = decimals.words(column).view(np.uint64)
        return words[:, 0] ^ _mixed(words[:, 1])
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _hash_bytes(column)
    if pa.types.is_floating(kind):
        bits: NDArray[Any] = values_of(canonical(column)).view(f"u{kind.bit_width // 8}")
        return bits.astype(np.uint64)
    return values_of(column).astype(np.uint64)


def _hash_bytes(column: Column) -> Hashes:
    """Of a string's length, first eight and last eight bytes: enough to spread keys, and quick."""
    _, offsets_buffer, data_buffer = column.buffers()
    rows = len(column)
    if offsets_buffer is None or data_buffer is None or not data_buffer.size:
        return np.zeros(rows, np.uint64)
    offsets = np.frombuffer(memoryview(offsets_buffer), np.int64, rows + 1, 8 * column.offset)
    data = np.frombuffer(memoryview(data_buffer), np.uint8)
    starts, lengths = offsets[:-1], np.diff(offsets)
    head, tail = np.zeros(rows, np.uint64), np.zeros(rows, np.uint64)
    for place in range(8):
        inside = place < lengths
        shift = np.uint64(8 * place)
        first = np.where(inside, data[np.where(inside, starts + place, 0)], 0).astype(np.uint64)
        last = np.where(inside, data[np.where(inside, offsets[1:] - 1 - place, 0)], 0).astype(np.uint64)
        head |= first << shift
        tail |= last << shift
    return _mixed(head + lengths.astype(np.uint64)) ^ tail
