"""The different rows so far, each as the bytes of its values, which Python's sets tell apart fast.

Rows of which a column is beyond all that it has been (a depth, a day, a sum) need not be looked for, and go
into a set only once others come that may be among them.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.operators.recursion.by_column.reach import Reach
from bamquery.engine.operators.recursion.by_column.values import Column, numpy_type
from bamquery.statement_context.cancellation import check_cancelled

MOST_COLUMNS: Final = 64
"""Whose nulls are bits of one number."""
_FEW_COLUMNS: Final = 8
"""Whose nulls fit a byte: a row takes a third less than with all 64 bits."""
_NULLS: Final = "nulls"
_BYTES_OF_ROW: Final = 160
"""Of an object of bytes without what is in it, and its place in a set that may just have grown."""
_AT_ONCE: Final = 1 << 16


class PackedRows:
    """Rows of columns of such types as `values` has; rows are equal where their values are."""

    def __init__(self, kinds: Sequence[pa.DataType]) -> None:
        self._kinds = kinds
        self._names = [str(place) for place in range(len(kinds))]
        self._null_bits: Any = np.uint8 if len(kinds) <= _FEW_COLUMNS else np.uint64
        values = zip(self._names, map(numpy_type, kinds), strict=True)
        self._layout = np.dtype([*values, (_NULLS, self._null_bits)])
        self._void = np.dtype((np.void, self._layout.itemsize))
        self._reals = [kind == pa.float64() for kind in kinds]
        self._rows: set[bytes] = set()
        self._behind: list[NDArray[Any]] = []
        self._count = 0
        self._reach = Reach(kinds)

    def __len__(self) -> int:
        return self._count

    def nbytes_with(self, more: int) -> int:
        """Memory at most, once there are so many more rows."""
        return (self._count + more) * (_BYTES_OF_ROW + self._layout.itemsize)

    def add(self, columns: Sequence[Column]) -> NDArray[np.int64] | None:
        """Put in rows; the places of those that are new, the first of several equal ones; None: all are."""
        packed = self._pack(columns)
        rows = self._bytes_of(packed)
        new = set(rows)
        beyond = self._reach.extend(columns)
        if not beyond:
            for part in self._behind:
                check_cancelled()
                self._rows.update(self._bytes_of(part))
            self._behind.clear()
            if not new.isdisjoint(self._rows):
                new -= self._rows
            self._rows |= new
        self._count += len(new)
        places = None if len(new) == len(rows) else _first_places(rows, new)
        if beyond:
            self._behind.append(packed if places is None else packed[places])
        return places

    def drain(self) -> Generator[list[Column], None, None]:
        """All rows, some at a time; they are let go of."""
        self._count, self._reach = 0, Reach(self._kinds)
        while self._rows or self._behind:
            if self._behind:
                packed = self._behind.pop()
            else:
                some = [self._rows.pop() for _ in range(min(len(self._rows), _AT_ONCE))]
                packed = np.frombuffer(b"".join(some), self._layout)
            nulls = packed[_NULLS]
            columns = []
            for place, name in enumerate(self._names):
                null = (nulls >> self._null_bits(place) & self._null_bits(1)).astype(np.bool_)
                columns.append(Column(np.ascontiguousarray(packed[name]), ~null if null.any() else None))
            yield columns

    def _pack(self, columns: Sequence[Column]) -> NDArray[Any]:
        packed = np.zeros(len(columns[0].values), self._layout)
        for place, (column, name, real) in enumerate(zip(columns, self._names, self._reals, strict=True)):
            values: Any = column.values
            if real:
                values = values + 0.0  # of two zeros one
            if column.valid is not None:
                values = np.where(column.valid, values, packed.dtype[place].type(0))
                packed[_NULLS] |= (~column.valid).astype(self._null_bits) << self._null_bits(place)
            packed[name] = values
        return packed

    def _bytes_of(self, packed: NDArray[Any]) -> list[bytes]:
        return cast(list[bytes], packed.view(self._void).tolist())


def _first_places(rows: Sequence[bytes], new: set[bytes]) -> NDArray[np.int64]:
    """Where each of those that are new is first."""
    left, places = set(new), []
    for place, row in enumerate(rows):
        if row in left:
            left.remove(row)
            places.append(place)
    return np.array(places, np.int64)
