"""first, last and any_value: one row's value for the group."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.accumulator import (
    Accumulator,
    Codes,
    StateColumns,
    drop_nulls,
    groups_with_rows,
)
from bamquery.engine.cpu.kernels import Column, boolean_column, from_values, take


class RowValue(Accumulator):
    """The value of a group's first or last row, or of the first that is not null.

    Args:
        last: the last row rather than the first.
        skip_nulls: rows with nulls do not count.
    """

    def __init__(self, *, last: bool, skip_nulls: bool) -> None:
        self._last = last
        self._skip_nulls = skip_nulls

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """The value, and whether there was a row."""
        if self._skip_nulls:
            column, codes = drop_nulls(column, codes)
        return self._choose_rows(column, np.arange(len(codes)), codes, groups)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The first or last state's that has a row."""
        values, seen = state
        assert isinstance(values, pa.Array)
        present = np.flatnonzero(np.asarray(seen))
        return self._choose_rows(values, present, codes[present], groups)

    def final(self, state: StateColumns) -> Column:
        """The values."""
        values, _ = state
        assert isinstance(values, pa.Array)
        return values

    def _choose_rows(
        self, column: Column, rows: NDArray[np.int64], codes: Codes, groups: int
    ) -> StateColumns:
        """`rows` are ascending positions in the column, `codes` their groups."""
        chosen = np.full(groups, -1 if self._last else np.iinfo(np.int64).max, np.int64)
        (np.maximum if self._last else np.minimum).at(chosen, codes, rows)
        seen = groups_with_rows(codes, groups)
        positions = from_values(np.where(seen, chosen, 0), pa.int64(), boolean_column(seen))
        return (take(column, positions), seen)
