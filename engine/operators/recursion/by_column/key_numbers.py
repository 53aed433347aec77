"""Keys as numbers: the values of each key have theirs, and those of a row's keys make one together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.operators.recursion.by_column.code_table import Codes
from bamquery.engine.operators.recursion.by_column.values import LIMITS, Column, Columns, Valid, both
from bamquery.engine.operators.recursion.by_row.values import LeftToDeviceError

_Number: TypeAlias = Callable[[Column], tuple[Codes, Valid]]
"""A key's numbers, and which rows have one; None: all. What a row has that has none means nothing."""

_MOST_BITS: Final = 62
_WIDE: Final = 1 << 31
"""Whole numbers of so many different values or more are numbered by those that are there."""
_NEAR: Final = 4
"""Values between bounds for each that is there: nearer bounds are not looked for."""
_FEW: Final = 1 << 15


class KeyNumbers:
    """How rows are numbered by their keys, as those of some rows ask for it.

    Attributes:
        span: numbers are from 0 to below it.
    """

    def __init__(self, keys: Columns, kinds: Sequence[pa.DataType], nulls_equal: Sequence[bool]) -> None:
        """`keys`: of all rows that others are looked up in; a null may be a value as others, or equal none.

        Raises:
            LeftToDeviceError: they have too many values for numbers of 64 bits.
        """
        numberings = [_numbering(*key) for key in zip(keys, kinds, nulls_equal, strict=True)]
        bits = [(numbering.span - 1).bit_length() for numbering in numberings]
        if sum(bits) > _MOST_BITS:
            raise LeftToDeviceError
        self.span = 1 << sum(bits)
        self._numbers = [numbering.number for numbering in numberings]
        self._shifts = [np.array(sum(bits[place + 1 :]), np.int64) for place in range(len(bits))]

    def codes(self, keys: Columns, rows: int) -> tuple[Codes, Valid]:
        """The number of each of so many rows, and which have one; None: all."""
        if not keys:
            return np.zeros(rows, np.int64), None
        codes: Any = None
        known: Valid = None
        for key, number, shift in zip(keys, self._numbers, self._shifts, strict=True):
            part, is_known = number(key)
            if shift:
                part = part << shift
            codes = part if codes is None else codes | part
            known = both(known, is_known)
        return codes, known


class _Numbering(NamedTuple):
    """How one key's values are numbered: from 0 to below `span`."""

    span: int
    number: _Number


def _numbering(key: Column, kind: pa.DataType, nulls_equal: bool) -> _Numbering:
    values = key.values if key.valid is None else key.values[key.valid]
    if not len(values):
        number: _Number = _no_values
        count = 1
    elif kind == pa.bool_():
        number, count = _truth_values, 2
    else:
        low, high = (key.low, key.high) if kind in LIMITS else (0, _WIDE)
        if kind in LIMITS and high - low >= max(_NEAR * len(values), _FEW):
            low, high = int(values.min()), int(values.max())
        if high - low < _WIDE:
            number, count = _from_least(low, high), high - low + 1
        else:
            distinct = np.unique(values)
            number, count = _among(distinct), len(distinct)
    if nulls_equal:
        return _Numbering(count + 1, _with_null(number, count))
    return _Numbering(count, _no_null(number))


def _no_values(key: Column) -> tuple[Codes, Valid]:
    rows = len(key.values)
    return np.zeros(rows, np.int64), np.zeros(rows, np.bool_)


def _truth_values(key: Column) -> tuple[Codes, Valid]:
    return key.values.astype(np.int64), None


def _from_least(low: int, high: int) -> _Number:
    """Whole numbers from one to another."""

    def number(key: Column) -> tuple[Codes, Valid]:
        values = key.values
        inside = None
        if key.low < low or key.high > high:
            inside = (values >= low) & (values <= high)
            values = np.where(inside, values, np.array(low, values.dtype))
        if values.dtype == np.uint64:
            return (values - np.uint64(low)).view(np.int64), inside
        codes = values.astype(np.int64)
        return (codes - low if low else codes), inside

    return number


def _among(distinct: NDArray[Any]) -> _Number:
    """Values by their places among different ones that ascend."""

    def number(key: Column) -> tuple[Codes, Valid]:
        places = np.minimum(distinct.searchsorted(key.values), len(distinct) - 1)
        return places, distinct[places] == key.values

    return number


def _no_null(number: _Number) -> _Number:
    """A null is no value that is there."""

    def without_null(key: Column) -> tuple[Codes, Valid]:
        codes, known = number(key)
        return codes, both(known, key.valid)

    return without_null


def _with_null(number: _Number, null: int) -> _Number:
    """A null is a value of that number."""

    def as_value(key: Column) -> tuple[Codes, Valid]:
        codes, known = number(key)
        if key.valid is None:
            return codes, known
        known = None if known is None else known | ~key.valid
        return np.where(key.valid, codes, null), known

    return as_value
