"""Rows to groups: equal keys get one number, dense and in order of first appearance.

Nulls are equal to each other, NaNs too, and -0.0 to 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bamquery import _native as native
from bamquery.engine.cpu.kernels import (
    Column,
    compute,
    constant,
    fill_null,
    from_values,
    stored_values,
    string_offsets,
    take_present,
    take_shared,
    validity,
)
from bamquery.engine.cpu.keys.hashing import string_words
from bamquery.engine.cpu.keys.key_words import KeyWords, canonical, key_words
from bamquery.statement_context.cancellation import interruptible

_LONG: Final = 1 << 22
"""Rows from which on a call is made so that Ctrl-C need not wait for its end."""


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


@dataclass(frozen=True, slots=True)
class _Key:
    """A key column as numbers.

    Attributes:
        words: equal where the keys are, nulls too.
        values: the keys, of each row or of each place.
        places: in them, of each row; None: each row has its own.
        shared: whether strings among them may be those of many rows.
        hashed: whether words are hashes, which different keys may have, though hardly any do.
    """

    words: KeyWords
    values: Column
    places: Column | None = None
    shared: bool = False
    hashed: bool = False

    def take(self, rows: NDArray[np.int64]) -> Column:
        """The keys of some rows.

        Raises:
            LargeStringError: their strings take too much memory.
        """
        places = from_values(rows, pa.int64())
        if self.places is not None:
            places = take_present(self.places, places)
        return (take_shared if self.shared else take_present)(self.values, places)


def group_rows(keys: Sequence[Column], rows: int) -> Grouping:
    """Number the rows by their keys; without keys all rows, even none, are one group.

    Raises:
        LargeStringError: strings that groups share in a dictionary take too much memory beside each of them.
    """
    if not keys:
        return Grouping(np.broadcast_to(np.int64(0), rows), 1, ())
    numbered = [_number(key) for key in keys]
    codes, leaders = _group([key.words for key in numbered], rows)
    if not all(_are_same(key.values, codes, leaders) for key in numbered if key.hashed):
        numbered = [_number_by_dictionary(key.values) if key.hashed else key for key in numbered]
        codes, leaders = _group([key.words for key in numbered], rows)
    return Grouping(codes, len(leaders), tuple(key.take(leaders) for key in numbered))


def _group(words: Sequence[KeyWords], rows: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The number of each row, and the first row of each number."""
    if rows >= _LONG:
        return interruptible(native.group_rows, words)
    return native.group_rows(words)


def _number(column: Column) -> _Key:
    if isinstance(column, pa.DictionaryArray):
        return _number_dictionary(column)
    if pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type):
        bytes_ = _single_bytes(column)
        if bytes_ is not None:
            return _Key((bytes_, None, 0), column)
        return _Key(string_words(column), column, hashed=True)
    column = canonical(column)
    words = key_words(column)
    return _number_by_dictionary(column) if words is None else _Key(words, column)


def _are_same(column: Column, codes: NDArray[np.int32], leaders: NDArray[np.int64]) -> bool:
    """Whether strings of rows whose hashes are the same are the same."""
    if not len(column):
        return True
    data = column.buffers()[2]
    held = b"" if data is None else data
    return native.are_same_strings(string_offsets(column), held, *validity(column), codes, leaders)


def _number_by_dictionary(column: Column) -> _Key:
    hashed = compute("dictionary_encode", column, options=pc.DictionaryEncodeOptions("encode"))
    assert isinstance(hashed, pa.DictionaryArray)
    return _Key((stored_values(hashed.indices), None, 0), hashed.dictionary, hashed.indices)


def _single_bytes(column: Column) -> NDArray[np.uint8] | None:
    """The bytes of strings of one byte each, as flags and grades are; None where one is null or different."""
    rows = len(column)
    data_buffer = column.buffers()[2]
    if not rows or column.null_count or data_buffer is None:
        return None
    offsets = string_offsets(column)
    first = int(offsets[0])
    if int(offsets[-1]) - first != rows or not (offsets[1:] - offsets[:-1] == 1).all():
        return None
    return np.frombuffer(memoryview(data_buffer), np.uint8, rows, first)


def _number_dictionary(column: pa.DictionaryArray[Any, Any]) -> _Key:
    """Through the dictionary's values, which may repeat, be null, or be used by no row."""
    places, values = column.indices, column.dictionary
    numbered = group_rows([values], len(values))
    of_null = values.null_count and places.null_count
    own: Column = places
    if numbered.groups < len(values) or of_null:
        own = take_present(from_values(numbered.codes, pa.int32()), places)
        if of_null:  # a place that is null, and one of a null, are one key
            null = values.is_null().index(True).as_py()
            own = fill_null(own, constant(int(numbered.codes[null]), pa.int32()))
    words = key_words(own)
    assert words is not None
    return _Key(words, values, places, shared=True)
