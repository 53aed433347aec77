"""first, last and any_value with ORDER BY: one row of each group, by an order of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.accumulator import Accumulator, Codes, StateColumns, groups_with_rows
from bamquery.engine.cpu.aggregates.value_lists import sort_within_groups
from bamquery.engine.cpu.kernels import (
    Column,
    boolean_column,
    boolean_values,
    compute,
    from_values,
    stored_values,
    take,
)
from bamquery.plan.expressions import ColumnRef, SortKey


class OrderedRow(Accumulator):
    """Over rows of a value and sort keys: the value of the first row in their order, or of the last.

    Rows that the keys do not tell apart keep the order in which they come.

    Args:
        keys: directions of the sort keys; their expressions are not looked at.
        last: the last row rather than the first.
        skip_nulls: rows with a null value do not count.
    """

    def __init__(self, keys: Sequence[SortKey], *, last: bool, skip_nulls: bool) -> None:
        self._keys = tuple(keys)
        self._last = last
        self._skip_nulls = skip_nulls

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """The row, and whether there was one."""
        rows = np.arange(len(column))
        if self._skip_nulls:
            value = cast("pa.StructArray", column).field(0)
            rows = np.flatnonzero(boolean_values(compute("is_valid", value)))
        return self._choose_rows(column, codes, groups, rows)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The states' first or last row."""
        rows, seen = state
        assert isinstance(rows, pa.Array)
        return self._choose_rows(rows, codes, groups, np.flatnonzero(np.asarray(seen)))

    def final(self, state: StateColumns) -> Column:
        """Null where there was no row."""
        rows, _ = state
        return cast("pa.StructArray", rows).flatten()[0]

    def _choose_rows(
        self, column: Column, codes: Codes, groups: int, rows: NDArray[np.int64]
    ) -> StateColumns:
        counted = take(column, rows)
        owners = np.asarray(codes[rows])
        fields = cast("pa.StructArray", counted).flatten()[1:]
        keys = [
            SortKey(ColumnRef(1 + i, "", field.type), key.descending, key.nulls_first)
            for i, (field, key) in enumerate(zip(fields, self._keys, strict=True))
        ]
        order = stored_values(sort_within_groups(owners, fields, keys)).astype(np.int64)
        places = np.zeros(groups, np.int64)
        # Of several writes to a group the last one stays.
        written = order if self._last else order[::-1]
        places[owners[written]] = rows[written]
        seen = groups_with_rows(owners, groups)
        return (take(column, from_values(places, pa.int64(), boolean_column(seen))), seen)
