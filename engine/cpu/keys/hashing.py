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

_WORD, _WORDS = 8, 8
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


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
    return (_hash_bytes(column), *validity(column))


def _mix(words: Hashes) -> Hashes:
    """The finalizer of splitmix64: every bit of the result depends on every bit given."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _hash_bytes(column: Column) -> Hashes:
    """Of a string's length and up to eight words of eight bytes, spread over it: all of it up to 64 bytes.

    Longer strings that differ between those words only share a hash: that costs time, not rightness.
    """
    _, offsets_buffer, data_buffer = column.buffers()
    rows = len(column)
    if offsets_buffer is None or data_buffer is None or not data_buffer.size:
        return np.zeros(rows, np.uint64)
    offsets = np.frombuffer(memoryview(offsets_buffer), np.int64, rows + 1, 8 * column.offset)
    first, end = int(offsets[0]), int(offsets[-1])
    data = np.concatenate(
        [np.frombuffer(memoryview(data_buffer), np.uint8)[first:end], np.zeros(8, np.uint8)]
    )
    # A word from every byte on; the zeros keep the last ones within the data.
    words = np.ndarray((len(data) - 7,), np.dtype("<u8"), data.data, strides=(1,))
    starts, lengths = offsets[:-1] - first, np.diff(offsets)
    needed = np.clip(-(-lengths // _WORD), 0, _WORDS)
    short = lengths < _WORD
    mask = np.where(
        short, (np.uint64(1) << (8 * np.where(short, lengths, 0)).astype(np.uint64)) - np.uint64(1), _ALL
    )
    step = np.maximum(lengths - _WORD, 0)
    hashes = lengths.astype(np.uint64)
    for place in range(int(needed.max(initial=0))):
        at = starts + step * place // np.maximum(needed - 1, 1)
        word = words[np.where(place < needed, at, 0)] & mask
        hashes = np.where(place < needed, _mix(hashes * np.uint64(31) + word), hashes)
    return hashes
