"""What aggregates reduce the values of each group to, described first, so that all of it is done at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pylibcudf as plc
from pylibcudf.aggregation import Aggregation
from pylibcudf.groupby import GroupBy, GroupByRequest
from pylibcudf.types import NullOrder, NullPolicy, Order, TypeId

from bamquery.engine.cuda.kernels import INT64, Kernels
from bamquery.engine.cuda.keys.grouping import GroupCodes, canonical

_SORTED: Final = (TypeId.STRING, TypeId.LIST, TypeId.DECIMAL128)
"""Types whose sums and extremes libcudf finds by sorting rows, and then those of all requests beside them."""


@dataclass(frozen=True)
class Reduction:
    """One value of each group.

    Attributes:
        values: those of the rows; None: rows are counted.
        aggregation: sum, min or max; None: values that are not null are counted.
        kind: of the result.
        empty: for a group without values, instead of null.
    """

    values: plc.Column | None
    aggregation: Aggregation | None
    kind: plc.DataType
    empty: int | None = None

    @property
    def is_hashed(self) -> bool:
        """Whether libcudf finds it by hashing."""
        return self.aggregation is None or self.values is None or self.values.type().id() not in _SORTED

    def request(self, rows: plc.Column) -> GroupByRequest:
        """For libcudf; `rows` is any column without nulls."""
        values = rows if self.values is None else self.values
        return GroupByRequest(values, [self.aggregation or plc.aggregation.count(NullPolicy.EXCLUDE)])

    def answer(self, kernels: Kernels, found: plc.Column) -> plc.Column:
        """What libcudf found, in its type."""
        wide = kernels.convert(found, self.kind)
        return wide if self.empty is None else kernels.fill_null(wide, kernels.number(self.empty))


def count_values(kernels: Kernels, values: plc.Column | None = None) -> Reduction:
    """Rows, or values that are not null."""
    return kernels.remembered(values, "count", lambda: Reduction(values, None, INT64, 0))


def total_counts(counts: plc.Column) -> Reduction:
    """The sum of int64 numbers, 0 where there are none."""
    return Reduction(counts, plc.aggregation.sum(), INT64, 0)


def reduce_by_codes(kernels: Kernels, codes: GroupCodes, reductions: Sequence[Reduction]) -> list[plc.Column]:
    """Those of each group, in the order of the groups' numbers."""
    answers: dict[int, plc.Column] = {}
    hashed = [i for i, one in enumerate(reductions) if one.is_hashed]
    if codes.column is None or not codes.rows or len(hashed) < 2:
        hashed = []
    if hashed:
        assert codes.column is not None
        requests = [reductions[i].request(codes.column) for i in hashed]
        keys, tables = GroupBy(plc.Table([codes.column])).aggregate(
            requests, stream=kernels.stream, mr=kernels.memory
        )
        found = [table.columns()[0] for table in tables]
        for i, column in zip(hashed, codes.scatter(kernels, found, keys.columns()[0]), strict=True):
            answers[i] = reductions[i].answer(kernels, column)
    for i, one in enumerate(reductions):
        if i not in answers:
            answers[i] = _reduce_one_group(kernels, codes, one)
    return [answers[i] for i in range(len(reductions))]


def reduce_by_keys(
    kernels: Kernels, keys: Sequence[plc.Column], rows: int, reductions: Sequence[Reduction]
) -> tuple[list[plc.Column], list[plc.Column]]:
    """Each key once, in order of first appearance, and its group's answers; one key and one row at least.

    Every reduction is hashed: one table of the keys serves all.
    """
    positions = kernels.positions(rows)
    requests = [one.request(positions) for one in reductions]
    grouping = GroupBy(plc.Table([canonical(kernels, key) for key in keys]), NullPolicy.INCLUDE)
    distinct, tables = grouping.aggregate(
        [*requests, GroupByRequest(positions, [plc.aggregation.min()])],
        stream=kernels.stream,
        mr=kernels.memory,
    )
    *found, first = (table.columns()[0] for table in tables)
    order = plc.sorting.stable_sorted_order(
        plc.Table([first]), [Order.ASCENDING], [NullOrder.AFTER], stream=kernels.stream, mr=kernels.memory
    )
    ordered = kernels.gather([*distinct.columns(), *found], order)
    answers = [one.answer(kernels, c) for one, c in zip(reductions, ordered[len(keys) :], strict=True)]
    return ordered[: len(keys)], answers


def _reduce_one_group(kernels: Kernels, codes: GroupCodes, one: Reduction) -> plc.Column:
    if one.aggregation is None or one.values is None:
        return codes.count(kernels, one.values)
    found = codes.reduce(kernels, one.values, one.aggregation, one.kind)
    return found if one.empty is None else kernels.fill_null(found, kernels.number(one.empty))
