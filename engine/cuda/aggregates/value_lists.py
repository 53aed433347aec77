"""Aggregates that need all their values at once: each group's are kept in a list."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import pylibcudf as plc
from pylibcudf.types import NullOrder, Order, TypeId

from bamquery.engine.cuda.aggregates.accumulator import Accumulator, Parts, added
from bamquery.engine.cuda.kernels import INT64, Kernels
from bamquery.engine.cuda.keys.grouping import Codes, order_within
from bamquery.engine.cuda.keys.sorting import null_order
from bamquery.engine.cuda.vectors import Vector
from bamquery.plan.expressions import SortKey

_INT32 = plc.DataType(TypeId.INT32)


class Gathered(Accumulator):
    """Lists of values that are not null, in the rows' order; memory follows the rows."""

    def partial(self, kernels: Kernels, rows: Parts, codes: Codes) -> Parts:
        """A list a group for each column of the rows."""
        rows, codes = self._wanted(kernels, rows, codes)
        counts = codes.counted(kernels)
        order = order_within(kernels, codes)
        return tuple(list_of(kernels, c, counts) for c in kernels.gather(rows, order))

    def merge(self, kernels: Kernels, parts: Parts, codes: Codes) -> Parts:
        """The lists, joined in the states' order."""
        counts = added(kernels, lengths(kernels, parts[0]), codes)
        joined = kernels.gather(parts, order_within(kernels, codes))
        return tuple(list_of(kernels, flat(kernels, column), counts) for column in joined)

    def final(self, kernels: Kernels, parts: Parts) -> plc.Column:
        """The answer from each group's values."""
        counts = Vector(kernels, lengths(kernels, parts[0]))
        return self.answer(kernels, tuple(flat(kernels, part) for part in parts), counts)

    @abstractmethod
    def answer(self, kernels: Kernels, values: Parts, counts: Vector) -> plc.Column:
        """The aggregate of each group: of the first `counts[0]` values, of the next `counts[1]`, ..."""

    def _wanted(self, kernels: Kernels, rows: Parts, codes: Codes) -> tuple[Parts, Codes]:
        """The rows that are kept."""
        if not rows[0].null_count():
            return rows, codes
        codes, kept = codes.among(kernels, kernels.is_valid(rows[0]), *rows)
        return tuple(kept), codes


class Ordered(Gathered):
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

    def answer(self, kernels: Kernels, values: Parts, counts: Vector) -> plc.Column:
        """The inner aggregate of the sorted rows."""
        codes = codes_of(kernels, counts)
        keys = values[self._arguments :]
        order = order_within(kernels, codes, keys, self._orders, self._nulls)
        rows = tuple(kernels.gather(values[: self._arguments], order))
        return self._inner.final(kernels, self._inner.partial(kernels, rows, codes))

    def _wanted(self, kernels: Kernels, rows: Parts, codes: Codes) -> tuple[Parts, Codes]:
        return rows, codes


def codes_of(kernels: Kernels, counts: Vector) -> Codes:
    """Group numbers of rows that lie group by group."""
    groups = len(counts)
    numbers = Vector.positions(kernels, groups).to(_INT32).repeats(counts)
    return Codes(numbers.column, len(numbers), groups)


def list_of(kernels: Kernels, values: plc.Column, counts: plc.Column) -> plc.Column:
    """Values that lie group by group as a list for each group."""
    offsets = Vector(kernels, counts).totals().to(_INT32)
    return plc.Column(plc.DataType(TypeId.LIST), counts.size(), None, None, 0, 0, [offsets.column, values])


def flat(kernels: Kernels, lists: plc.Column) -> plc.Column:
    """The values of all lists, one after the other."""
    if not lists.size():
        return kernels.cut(lists.child(1), 0, 0)
    return lists.list_view().get_sliced_child(stream=kernels.stream)


def lengths(kernels: Kernels, lists: plc.Column) -> plc.Column:
    """How many values each list has, as int64."""
    found = plc.lists.count_elements(lists, stream=kernels.stream, mr=kernels.memory)
    return kernels.convert(found, INT64)
