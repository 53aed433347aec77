"""arg_min and arg_max: one column's value on the row where another is least or greatest."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.accumulator import Accumulator, Codes, Parts, seen_by_group
from bamquery.engine.cpu.aggregates.extremes import extremes
from bamquery.engine.cpu.frames import make_batch
from bamquery.engine.cpu.kernels import (
    Column,
    booleans_of,
    compute,
    flags_of,
    from_values,
    take,
    values_of,
)
from bamquery.engine.cpu.keys.sorting import sorted_positions
from bamquery.plan.expressions import ColumnRef, SortKey


class ByExtreme(Accumulator):
    """Over rows of (value, by): the value of the first row whose `by` is the extreme.

    Args:
        greatest: the greatest rather than the least; NaN is the greatest number.
        skip_nulls: rows with a null value do not count; those with a null `by` never do.
    """

    def __init__(self, *, greatest: bool, skip_nulls: bool) -> None:
        self._greatest = greatest
        self._skip_nulls = skip_nulls

    def partial(self, column: Column, codes: Codes, groups: int) -> Parts:
        """Value and `by` of the row, and whether there was one."""
        value, by = cast("pa.StructArray", column).flatten()
        counted = compute("is_valid", by)
        if self._skip_nulls:
            counted = compute("and", counted, compute("is_valid", value))
        return self._chosen(value, by, codes, groups, np.flatnonzero(booleans_of(counted)))

    def merge(self, parts: Parts, codes: Codes, groups: int) -> Parts:
        """The extremes' extreme, of the first state where several have it."""
        value, by, seen = parts
        assert isinstance(value, pa.Array)
        assert isinstance(by, pa.Array)
        return self._chosen(value, by, codes, groups, np.flatnonzero(np.asarray(seen)))

    def final(self, parts: Parts) -> Column:
        """Null where no row counted."""
        assert isinstance(parts[0], pa.Array)
        return parts[0]

    def _chosen(self, value: Column, by: Column, codes: Codes, groups: int, rows: NDArray[np.int64]) -> Parts:
        if isinstance(by, pa.FloatingPointArray | pa.IntegerArray) or pa.types.is_temporal(by.type):
            chosen, seen = self._by_value(values_of(by), codes, groups, rows)
        else:
            chosen, seen = self._by_rank(by, codes, groups, rows)
        places = from_values(chosen, pa.int64(), flags_of(seen))
        return (take(value, places), take(by, places), seen)

    def _by_value(
        self, by: NDArray[Any], codes: Codes, groups: int, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Rows by the extreme itself, of types whose stored values are numbers."""
        owners, keys = np.asarray(codes[rows]), by[rows]
        wanted = extremes(owners, keys, groups, greatest=self._greatest)[owners]
        best = np.flatnonzero((keys == wanted) | _both_nan(keys, wanted))
        first = np.full(groups, len(by), np.int64)
        np.minimum.at(first, owners[best], rows[best])
        seen = seen_by_group(owners, groups)
        return np.where(seen, first, 0), seen

    def _by_rank(
        self, by: Column, codes: Codes, groups: int, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Rows in the order of `by`, of which each group takes its first."""
        keys = take(by, rows)
        greatest = SortKey(ColumnRef(0, "by", by.type), descending=self._greatest)
        positions = sorted_positions(make_batch([keys], len(rows)), [greatest], None)
        order = rows[values_of(positions).astype(np.int64)]
        owners = np.asarray(codes[order])
        first = np.full(groups, len(order), np.int64)
        np.minimum.at(first, owners, np.arange(len(order)))
        seen = seen_by_group(owners, groups)
        return order[np.where(seen, first, 0)] if len(order) else np.zeros(groups, np.int64), seen


def _both_nan(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    if a.dtype.kind != "f":
        return np.zeros(len(a), np.bool_)
    both: NDArray[np.bool_] = np.isnan(a) & np.isnan(b)
    return both
