"""One row of each group, by an order: first, last and any_value with ORDER BY, arg_min and arg_max."""

from __future__ import annotations

from collections.abc import Sequence

import pylibcudf as plc
from pylibcudf.types import NullOrder, Order

from bamquery.engine.cuda.aggregates.accumulator import Accumulator, StateColumns
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.keys.grouping import GroupCodes, group_ends, sort_within_groups
from bamquery.engine.cuda.keys.sorting import null_order
from bamquery.plan.expressions import SortKey


class OrderedRow(Accumulator):
    """Over rows of a value and sort keys: the value of the first row in their order, or of the last.

    Rows that the keys do not tell apart keep the order in which they come.

    Args:
        keys: directions of the sort keys; their expressions are not looked at.
        last: the last row rather than the first.
        needed: columns of the rows, by position; a row counts only if none of them is null.
    """

    def __init__(self, keys: Sequence[SortKey], *, last: bool, needed: Sequence[int]) -> None:
        self._orders = [Order.DESCENDING if key.descending else Order.ASCENDING for key in keys]
        self._nulls: list[NullOrder] = [null_order(key) for key in keys]
        self._last = last
        self._needed = tuple(needed)

    def partial(self, kernels: Kernels, rows: StateColumns, codes: GroupCodes) -> StateColumns:
        """The row, and whether there was one."""
        for index in self._needed:
            if rows[index].null_count():
                codes, kept = codes.filter(kernels, kernels.is_valid(rows[index]), *rows)
                rows = tuple(kept)
        return self._choose_rows(kernels, rows, codes)

    def merge(self, kernels: Kernels, state: StateColumns, codes: GroupCodes) -> StateColumns:
        """The states' first or last row."""
        *rows, seen = state
        codes, rows = codes.filter(kernels, seen, *rows)
        return self._choose_rows(kernels, tuple(rows), codes)

    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """Null where there was no row."""
        return state[0]

    def _choose_rows(self, kernels: Kernels, rows: StateColumns, codes: GroupCodes) -> StateColumns:
        if not codes.rows:
            nothing = [
                plc.Column.all_null_like(c, codes.groups, stream=kernels.stream, mr=kernels.memory)
                for c in rows
            ]
            return (*nothing, kernels.repeat_scalar(kernels.truth(False), codes.groups))
        order = sort_within_groups(kernels, codes, rows[1:], self._orders, self._nulls)
        places = group_ends(kernels, codes, order, last=self._last)
        positions = kernels.positions(codes.rows)
        *found, row = kernels.gather([*rows, positions], places, nullify=True)
        return (*found, kernels.is_valid(row))
