"""first, last and any_value: one row's value for the group."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.accumulator import (
    Accumulator,
    Codes,
    Parts,
    seen_by_group,
    without_nulls,
)
from bamquery.engine.cpu.kernels import Column, flags_of, from_values, take


class RowValue(Accumulator):
    """The value of a group's first or last row, or of the first that is not null.

    Args:
        last: the last row rather than the first.
        skip_nulls: rows with nulls do not count.
    """

    def __init__(self, *, last: bool, skip_nulls: bool) -> None:
        self._last = last
        self._skip_nulls = skip_nulls

    def partial(self, column: Column, codes: Codes, groups: int) -> Parts:
        """The value, and whether there was a row."""
        if self._skip_nulls:
            column, codes = without_nulls(column, codes)
        return self._chosen(column, np.arange(len(codes)), codes, groups)

    def merge(self, parts: Parts, codes: Codes, groups: int) -> Parts:
        """The first or last state's that has a row."""
        values, seen = parts
        assert isinstance(values, pa.Array)
        present = np.flatnonzero(np.asarray(seen))
        return self._chosen(values, present, codes[present], groups)

    def final(self, parts: Parts) -> Column:
        """The values."""
        values, _ = parts
        assert isinstance(values, pa.Array)
        return values

    def _chosen(self, column: Column, rows: NDArray[np.int64], codes: Codes, groups: int) -> Parts:
        """`rows` are ascending positions in the column, `codes` their groups."""
        chosen = np.full(groups, -1 if self._last else np.iinfo(np.int64).max, np.int64)
        (np.maximum if self._last else np.minimum).at(chosen, codes, rows)
        seen = seen_by_group(codes, groups)
        positions = from_values(np.where(seen, chosen, 0), pa.int64(), flags_of(seen))
        return (take(column, positions), seen)
