"""first, last and any_value with ORDER BY: one row of each group, by an order of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.accumulator import Accumulator, Codes, Parts, seen_by_group
from bamquery.engine.cpu.aggregates.value_lists import sorted_within
from bamquery.engine.cpu.kernels import (
    Column,
    booleans_of,
    compute,
    flags_of,
    from_values,
    take,
    values_of,
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

    def partial(self, column: Column, codes: Codes, groups: int) -> Parts:
        """The row, and whether there was one."""
        rows = np.arange(len(column))
        if self._skip_nulls:
            value = cast("pa.StructArray", column).field(0)
            rows = np.flatnonzero(booleans_of(compute("is_valid", value)))
        return self._chosen(column, codes, groups, rows)

    def merge(self, parts: Parts, codes: Codes, groups: int) -> Parts:
        """The states' first or last row."""
        rows, seen = parts
        assert isinstance(rows, pa.Array)
        return self._chosen(rows, codes, groups, np.flatnonzero(np.asarray(seen)))

    def final(self, parts: Parts) -> Column:
        """Null where there was no row."""
        rows, _ = parts
        return cast("pa.StructArray", rows).flatten()[0]

    def _chosen(self, column: Column, codes: Codes, groups: int, rows: NDArray[np.int64]) -> Parts:
        counted = take(column, rows)
        owners = np.asarray(codes[rows])
        fields = cast("pa.StructArray", counted).flatten()[1:]
        keys = [
            SortKey(ColumnRef(1 + i, "", field.type), key.descending, key.nulls_first)
            for i, (field, key) in enumerate(zip(fields, self._keys, strict=True))
        ]
        order = values_of(sorted_within(owners, fields, keys)).astype(np.int64)
        places = np.zeros(groups, np.int64)
        # Of several writes to a group the last one stays.
        written = order if self._last else order[::-1]
        places[owners[written]] = rows[written]
        seen = seen_by_group(owners, groups)
        return (take(column, from_values(places, pa.int64(), flags_of(seen))), seen)
