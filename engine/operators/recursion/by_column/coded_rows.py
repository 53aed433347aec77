"""The different rows so far, each as one number of 62 bits: whole numbers, dates, texts and truth values.

A column has as many bits as its values have needed so far. Once others come that need more, all numbers are
made anew, with some bits to spare.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.operators.recursion.by_column.code_table import Codes, CodeTable
from bamquery.engine.operators.recursion.by_column.reach import Reach
from bamquery.engine.operators.recursion.by_column.runs import firsts_of_each
from bamquery.engine.operators.recursion.by_column.values import LIMITS, Column, numpy_type, with_bounds
from bamquery.statement_context.cancellation import check_cancelled

_Bounds: TypeAlias = tuple[int, int]

_MOST_BITS: Final = 62
_FARTHEST: Final = (1 << 63) - 2
"""From 0 on either side: numbers for which one more or less is of 64 bits, too."""
_FEW_BITS: Final = 24
"""A column's bounds that need no more are not looked for anew."""
_SPARE_BITS: Final = 2
"""Of a column that has needed more: numbers are made anew once it has four times as many values."""
_AT_ONCE: Final = 1 << 16


class TooWideError(Exception):
    """Rows do not fit so many bits."""


def can_code(kinds: Sequence[pa.DataType]) -> bool:
    """Whether there is a number for each row of columns of such types, where their values are near enough."""
    return all(kind in LIMITS or kind == pa.bool_() for kind in kinds)


class CodedRows:
    """Rows of columns that `can_code`; rows are equal where their values are."""

    def __init__(self, kinds: Sequence[pa.DataType]) -> None:
        self._kinds = kinds
        self._reach = Reach(kinds)
        self._layout: _Layout | None = None
        self._table = CodeTable(1)
        self._behind: list[Codes] = []  # not in the table yet: none was looked for so far
        self._behind_rows = 0

    def __len__(self) -> int:
        return len(self._table) + self._behind_rows

    def nbytes_with(self, more: int) -> int:
        """Memory at most, once there are so many more rows."""
        table = self._table.nbytes_with(more + self._behind_rows)
        return table + self._table.nbytes + 8 * self._behind_rows  # to make them anew

    def add(self, columns: Sequence[Column]) -> NDArray[np.int64] | None:
        """Put in rows; the places of those that are new, the first of several equal ones; None: all are.

        Raises:
            TooWideError: they do not fit; nothing of them was put in.
        """
        codes = self._layout_for(columns).encode(columns)
        if self._reach.extend(columns):
            places = firsts_of_each(codes)
            self._behind.append(codes if places is None else codes[places])
            self._behind_rows += len(self._behind[-1])
            return places
        while self._behind:
            check_cancelled()
            self._table.add(np.concatenate(self._behind))
            self._behind, self._behind_rows = [], 0
        return self._table.add(codes)

    def drain(self) -> Generator[list[Column], None, None]:
        """All rows, some at a time; they are let go of."""
        parts, layout = [self._table.codes, *self._behind], self._layout
        self._layout, self._table, self._reach = None, CodeTable(1), Reach(self._kinds)
        self._behind, self._behind_rows = [], 0
        for codes in parts:
            for start in range(0, len(codes), _AT_ONCE):
                assert layout is not None
                yield layout.decode(codes[start : start + _AT_ONCE], self._kinds)

    def _layout_for(self, columns: Sequence[Column]) -> _Layout:
        """One that has room for the columns."""
        bounds = [self._bounds(*each) for each in zip(columns, self._kinds, strict=True)]
        layout = self._layout
        if layout is not None and layout.has_room(bounds):
            return layout
        # Bounds may be far wider than the values are.
        pairs = zip(columns, self._kinds, bounds, strict=True)
        bounds = [
            own if _bits(*own) <= _FEW_BITS else self._bounds(with_bounds(c.values, c.valid, kind), kind)
            for c, kind, own in pairs
        ]
        if layout is not None and layout.has_room(bounds):
            return layout
        self._layout = _Layout.for_bounds(bounds) if layout is None else layout.widened(bounds)
        table = CodeTable(self._layout.span)
        if layout is not None:
            table.add(self._recode(self._table.codes, layout, self._layout))
            if self._behind:
                self._behind = [self._recode(np.concatenate(self._behind), layout, self._layout)]
        self._table = table
        return self._layout

    def _bounds(self, column: Column, kind: pa.DataType) -> _Bounds:
        return (0, 1) if kind == pa.bool_() else (column.low, column.high)

    def _recode(self, codes: Codes, before: _Layout, after: _Layout) -> Codes:
        made = np.empty(len(codes), np.int64)
        for start in range(0, len(codes), _AT_ONCE):
            check_cancelled()
            some = slice(start, start + _AT_ONCE)
            made[some] = after.encode(before.decode(codes[some], self._kinds))
        return made


class _Layout:
    """Where in a number each column is, and what it has there: 0 for null, 1 for the least value, and so on.

    Attributes:
        span: numbers are below it.
    """

    def __init__(self, lows: Sequence[int], bits: Sequence[int]) -> None:
        if sum(bits) > _MOST_BITS:
            raise TooWideError
        self._bounds = [(low, _high(low, each)) for low, each in zip(lows, bits, strict=True)]
        if any(low < -_FARTHEST or high > _FARTHEST for low, high in self._bounds):
            raise TooWideError
        self._bits = bits
        self.span = 1 << sum(bits)
        # Arrays without a dimension: with numbers of Python an operation takes twice as long.
        self._offsets = [np.array(1 - low, np.int64) for low in lows]
        self._shifts = [np.array(sum(bits[place + 1 :]), np.int64) for place in range(len(bits))]
        self._masks = [np.array((1 << each) - 1, np.int64) for each in bits]

    @staticmethod
    def for_bounds(bounds: Sequence[_Bounds]) -> _Layout:
        """One with room for such values."""
        return _Layout([low for low, _ in bounds], [_bits(low, high) for low, high in bounds])

    def has_room(self, bounds: Sequence[_Bounds]) -> bool:
        """Whether columns with such bounds have a place in its numbers."""
        pairs = zip(bounds, self._bounds, strict=True)
        return all(low >= least and high <= most for (low, high), (least, most) in pairs)

    def widened(self, bounds: Sequence[_Bounds]) -> _Layout:
        """One with room for these and its own; a column that needs more has some to spare on both sides."""
        pairs = zip(bounds, self._bounds, strict=True)
        wider = [(min(low, least), max(high, most)) for (low, high), (least, most) in pairs]
        lows, bits = [], []
        for (low, high), own, had in zip(wider, self._bounds, self._bits, strict=True):
            wanted = had if (low, high) == own else max(_bits(low, high), had) + _SPARE_BITS
            spare = (_high(low, wanted) - high) // 2
            lows.append(max(low - spare, -_FARTHEST))
            bits.append(wanted)
        try:
            return _Layout(lows, bits)
        except TooWideError:
            return _Layout.for_bounds(wider)

    def encode(self, columns: Sequence[Column]) -> Codes:
        """The number of each row."""
        codes: Any = None
        for column, offset, shift in zip(columns, self._offsets, self._shifts, strict=True):
            values = column.values
            part = (values if values.dtype == np.int64 else values.astype(np.int64)) + offset
            if column.valid is not None:
                part *= column.valid
            if shift:
                part <<= shift
            codes = part if codes is None else codes | part
        found: Codes = codes
        return found

    def decode(self, codes: Codes, kinds: Sequence[pa.DataType]) -> list[Column]:
        """The rows of such numbers, as columns of their types."""
        columns = []
        layout = zip(self._bounds, self._offsets, self._shifts, self._masks, kinds, strict=True)
        for (low, high), offset, shift, mask, kind in layout:
            part = codes >> shift & mask
            valid = part > 0
            values = (np.maximum(part, 1) - offset).astype(numpy_type(kind))
            columns.append(Column(values, None if valid.all() else valid, low, high))
        return columns


def _bits(low: int, high: int) -> int:
    """For all from one to another value, and null."""
    return (high - low + 1).bit_length()


def _high(low: int, bits: int) -> int:
    """The greatest value for which there is room."""
    return low + (1 << bits) - 2
