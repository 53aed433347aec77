"""Aggregates that need all their values at once: each group's are kept in a list."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import pylibcudf as plc
from pylibcudf.types import NullOrder, Order, TypeId

from bamquery.engine.cuda.aggregates.accumulator import Accumulator, StateColumns, sum_counts
from bamquery.engine.cuda.kernels import INT64, Kernels
from bamquery.engine.cuda.keys.grouping import GroupCodes, sort_within_groups
from bamquery.engine.cuda.keys.sorting import null_order
from bamquery.engine.cuda.vectors import Vector
from bamquery.plan.expressions import SortKey

_INT32 = plc.DataType(TypeId.INT32)


class HolisticAggregate(Accumulator):
    """Lists of values that are not null, in the rows' order; memory follows the rows."""

    def partial(self, kernels: Kernels, rows: StateColumns, codes: GroupCodes) -> StateColumns:
        """A list a group for each column of the rows."""
        rows, codes = self._select_rows(kernels, rows, codes)
        counts = codes.count(kernels)
        order = sort_within_groups(kernels, codes)
        return tuple(make_lists(kernels, c, counts) for c in kernels.gather(rows, order))

    def merge(self, kernels: Kernels, state: StateColumns, codes: GroupCodes) -> StateColumns:
        """The lists, joined in the states' order."""
        counts = sum_counts(kernels, list_lengths(kernels, state[0]), codes)
        joined = kernels.gather(state, sort_within_groups(kernels, codes))
        return tuple(make_lists(kernels, flatten_lists(kernels, column), counts) for column in joined)

    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """The answer from each group's values."""
        counts = Vector(kernels, list_lengths(kernels, state[0]))
        return self.answer(kernels, tuple(flatten_lists(kernels, column) for column in state), counts)

    @abstractmethod
    def answer(self, kernels: Kernels, values: StateColumns, counts: Vector) -> plc.Column:
        """The aggregate of each group: of the first `counts[0]` values, of the next `counts[1]`, ..."""

    def _select_rows(
        self, kernels: Kernels, rows: StateColumns, codes: GroupCodes
    ) -> tuple[StateColumns, GroupCodes]:
        """The rows that are kept."""
        if not rows[0].null_count():
            return rows, codes
        codes, kept = codes.filter(kernels, kernels.is_valid(rows[0]), *rows)
        return tuple(kept), codes


class OrderedAggregate(HolisticAggregate):
    """Another aggregate over the rows in an order of their own.

    Args:
        inner: the aggregate.
        arguments: how many columns of the rows it takes; the others are the sort keys.
        keys: directions of the sort keys; their expressions are not looked at.
    """

    def __init__(self, inner: Accumulator, arguments: int, keys: Sequence[SortKey]) -> None:
        self._inner = inner
        self._arguments = arguments
        self._orders = [Order.DESCENDING if key.descending else Order.ASCENDING for key in keys]
        self._nulls: list[NullOrder] = [null_order(key) for key in keys]

    def answer(self, kernels: Kernels, values: StateColumns, counts: Vector) -> plc.Column:
        """The inner aggregate of the sorted rows."""
        codes = group_codes(kernels, counts)
        keys = values[self._arguments :]
        order = sort_within_groups(kernels, codes, keys, self._orders, self._nulls)
        rows = tuple(kernels.gather(values[: self._arguments], order))
        return self._inner.final(kernels, self._inner.partial(kernels, rows, codes))

    def _select_rows(
        self, kernels: Kernels, rows: StateColumns, codes: GroupCodes
    ) -> tuple[StateColumns, GroupCodes]:
        return rows, codes


def group_codes(kernels: Kernels, counts: Vector) -> GroupCodes:
    """Group numbers of rows that lie group by group."""
    groups = len(counts)
    numbers = Vector.positions(kernels, groups).cast(_INT32).repeats(counts)
    return GroupCodes(numbers.column, len(numbers), groups)


def make_lists(kernels: Kernels, values: plc.Column, counts: plc.Column) -> plc.Column:
    """Values that lie group by group as a list for each group."""
    offsets = Vector(kernels, counts).totals().cast(_INT32)
    return plc.Column(plc.DataType(TypeId.LIST), counts.size(), None, None, 0, 0, [offsets.column, values])


def flatten_lists(kernels: Kernels, lists: plc.Column) -> plc.Column:
    """The values of all lists, one after the other."""
    if not lists.size():
        return kernels.slice_column(lists.child(1), 0, 0)
    return lists.list_view().get_sliced_child(stream=kernels.stream)


def list_lengths(kernels: Kernels, lists: plc.Column) -> plc.Column:
    """How many values each list has, as int64."""
    found = plc.lists.count_elements(lists, stream=kernels.stream, mr=kernels.memory)
    return kernels.convert(found, INT64)
