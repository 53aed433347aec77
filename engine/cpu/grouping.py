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
    compute,
    constant,
    from_values,
    take,
    valid,
    values_of,
    where,
)


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
    """Number the rows by their keys; without keys all rows, even none, are one group."""
    if not keys:
        return Grouping(np.broadcast_to(np.int64(0), rows), 1, ())
    codes, values = _encode(keys[0])
    key_codes = [np.arange(len(values))]
    key_values = [values]
    for key in keys[1:]:
        next_codes, next_values = _encode(key)
        # Both codes are below 2**31, so a pair of them fits 64 bits.
        pairs = codes.astype(np.int64) * max(len(next_values), 1) + next_codes
        codes, distinct_pairs = _encode(from_values(pairs, pa.int64()))
        before, last = np.divmod(values_of(distinct_pairs), max(len(next_values), 1))
        key_codes = [earlier[before] for earlier in key_codes] + [last]
        key_values.append(next_values)
    groups = len(key_codes[0])
    taken = tuple(take(values, positions) for values, positions in zip(key_values, key_codes, strict=True))
    return Grouping(codes, groups, taken)


def _encode(column: Column) -> tuple[NDArray[Any], Column]:
    """A number for each row, and the values by number."""
    if isinstance(column, pa.DictionaryArray):
        return _encode_dictionary(column)
    options = pc.DictionaryEncodeOptions("encode")
    encoded = compute("dictionary_encode", canonical(column), options=options)
    assert isinstance(encoded, pa.DictionaryArray)
    return values_of(encoded.indices), encoded.dictionary


def _encode_dictionary(column: pa.DictionaryArray[Any, Any]) -> tuple[NDArray[Any], Column]:
    """Through the dictionary's values, which may repeat, be null, or be used by no row."""
    value_codes, values = _encode(column.dictionary)
    rows = take(from_values(value_codes, pa.int32()), column.indices)
    codes, used = _encode(rows)
    return codes, take(values, used)


def canonical(column: Column) -> Column:
    """The column with one NaN and one zero for all, so that equal keys have equal bits."""
    if not pa.types.is_floating(column.type):
        return column
    unsigned = from_values(values_of(column) + 0.0, column.type, valid(column))
    not_a_number = compute("is_nan", unsigned)
    if not any_true(not_a_number):
        return unsigned
    return where(not_a_number, constant(float("nan"), column.type), unsigned)
