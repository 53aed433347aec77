"""The different rows of a recursive query so far: as numbers where they fit, else as bytes."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.operators.recursion.by_column.coded_rows import CodedRows, TooWideError, can_code
from bamquery.engine.operators.recursion.by_column.packed_rows import PackedRows
from bamquery.engine.operators.recursion.by_column.values import Column


class DistinctRows:
    """Rows of columns of such types as `values` has; rows are equal where their values are."""

    def __init__(self, kinds: Sequence[pa.DataType]) -> None:
        self._kinds = kinds
        self._rows: CodedRows | PackedRows = CodedRows(kinds) if can_code(kinds) else PackedRows(kinds)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def is_coded(self) -> bool:
        """Whether they are numbers, of which many more are kept and looked for in the same time."""
        return isinstance(self._rows, CodedRows)

    def nbytes_with(self, more: int) -> int:
        """Memory at most, once there are so many more rows."""
        return self._rows.nbytes_with(more)

    def add(self, columns: Sequence[Column]) -> NDArray[np.int64] | None:
        """Put in rows; the places of those that are new, the first of several equal ones; None: all are."""
        try:
            return self._rows.add(columns)
        except TooWideError:
            packed = PackedRows(self._kinds)
            for part in self.drain():
                packed.add(part)
            self._rows = packed
            return packed.add(columns)

    def drain(self) -> Generator[list[Column], None, None]:
        """All rows, some at a time; they are let go of."""
        yield from self._rows.drain()
