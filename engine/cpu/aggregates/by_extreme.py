"""arg_min and arg_max: one column's value on the row where another is least or greatest."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.accumulator import Accumulator, Codes, StateColumns, groups_with_rows
from bamquery.engine.cpu.aggregates.extremes import extremes
from bamquery.engine.cpu.frames import make_batch
from bamquery.engine.cpu.kernels import (
    Column,
    boolean_column,
    boolean_values,
    compute,
    from_values,
    stored_values,
    take,
)
from bamquery.engine.cpu.keys.sorting import sorted_positions
from bamquery.plan.expressions import ColumnRef, SortKey


class ArgExtreme(Accumulator):
    """Over rows of (value, by): the value of the first row whose `by` is the extreme.

    Args:
        greatest: the greatest rather than the least; NaN is the greatest number.
        skip_nulls: rows with a null value do not count; those with a null `by` never do.
    """

    def __init__(self, *, greatest: bool, skip_nulls: bool) -> None:
        self._greatest = greatest
        self._skip_nulls = skip_nulls

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """Value and `by` of the row, and whether there was one."""
        value, by = cast("pa.StructArray", column).flatten()
        counted = compute("is_valid", by)
        if self._skip_nulls:
            counted = compute("and", counted, compute("is_valid", value))
        return self._choose_rows(value, by, codes, groups, np.flatnonzero(boolean_values(counted)))

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The extremes' extreme, of the first state where several have it."""
        value, by, seen = state
        assert isinstance(value, pa.Array)
        assert isinstance(by, pa.Array)
        return self._choose_rows(value, by, codes, groups, np.flatnonzero(np.asarray(seen)))

    def final(self, state: StateColumns) -> Column:
        """Null where no row counted."""
        assert isinstance(state[0], pa.Array)
        return state[0]

    def _choose_rows(
        self, value: Column, by: Column, codes: Codes, groups: int, rows: NDArray[np.int64]
    ) -> StateColumns:
        if isinstance(by, pa.FloatingPointArray | pa.IntegerArray) or pa.types.is_temporal(by.type):
            chosen, seen = self._choose_by_value(stored_values(by), codes, groups, rows)
        else:
            chosen, seen = self._choose_by_rank(by, codes, groups, rows)
        places = from_values(chosen, pa.int64(), boolean_column(seen))
        return (take(value, places), take(by, places), seen)

    def _choose_by_value(
        self, by: NDArray[Any], codes: Codes, groups: int, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Rows by the extreme itself, of types whose stored values are numbers."""
        owners, keys = np.asarray(codes[rows]), by[rows]
        wanted = extremes(owners, keys, groups, greatest=self._greatest)[owners]
        best = np.flatnonzero((keys == wanted) | _both_nan(keys, wanted))
        first = np.full(groups, len(by), np.int64)
        np.minimum.at(first, owners[best], rows[best])
        seen = groups_with_rows(owners, groups)
        return np.where(seen, first, 0), seen

    def _choose_by_rank(
        self, by: Column, codes: Codes, groups: int, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Rows in the order of `by`, of which each group takes its first."""
        keys = take(by, rows)
        greatest = SortKey(ColumnRef(0, "by", by.type), descending=self._greatest)
        positions = sorted_positions(make_batch([keys], len(rows)), [greatest], None)
        order = rows[stored_values(positions).astype(np.int64)]
        owners = np.asarray(codes[order])
        first = np.full(groups, len(order), np.int64)
        np.minimum.at(first, owners, np.arange(len(order)))
        seen = groups_with_rows(owners, groups)
        return order[np.where(seen, first, 0)] if len(order) else np.zeros(groups, np.int64), seen


def _both_nan(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    if a.dtype.kind != "f":
        return np.zeros(len(a), np.bool_)
    both: NDArray[np.bool_] = np.isnan(a) & np.isnan(b)
    return both
