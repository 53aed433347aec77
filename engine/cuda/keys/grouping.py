"""Rows to groups: equal keys get one number, dense and in order of first appearance.

Nulls are equal to each other, NaNs too, and -0.0 to 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.aggregation import Aggregation
from pylibcudf.groupby import GroupBy, GroupByRequest
from pylibcudf.types import NullOrder, NullPolicy, Order, TypeId

from bamquery.engine.cuda.cache.late_columns import Dictionary, Held, LateColumn, column_of, take_rows
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.keys.dense_rows import MANY_ROWS, number_combinations
from bamquery.engine.cuda.keys.hashed_rows import hash_groups, takes_keys

_FLOATS = (TypeId.FLOAT32, TypeId.FLOAT64)


@dataclass(frozen=True)
class GroupCodes:
    """Which group each of some rows is in.

    Attributes:
        column: int32 group number of each row; None: all rows are in group 0.
        rows: how many rows.
        groups: how many groups there are, also such without rows.
    """

    column: plc.Column | None
    rows: int
    groups: int

    def reduce(
        self, kernels: Kernels, values: plc.Column, aggregation: Aggregation, kind: plc.DataType
    ) -> plc.Column:
        """The aggregation of each group's values in a type, one row a group; null for one without values.

        Not for counts, which are 0 then; see `count`.
        """
        if self.column is None:
            if not self.rows:
                return _empty_groups(kernels, values, kind)
            return kernels.repeat_scalar(kernels.reduce(values, aggregation, kind), 1)
        if not self.rows:
            return _empty_groups(kernels, values, kind, self.groups)
        found, codes = self._group(kernels, values, aggregation)
        return self.scatter(kernels, [kernels.convert(found, kind)], codes)[0]

    def count(self, kernels: Kernels, values: plc.Column | None = None) -> plc.Column:
        """Rows of each group, or its values that are not null, as int64."""
        if self.column is None:
            count = self.rows if values is None else self.rows - values.null_count()
            return kernels.repeat_scalar(kernels.number(count), 1)
        if not self.rows:
            return kernels.repeat_scalar(kernels.number(0), self.groups)
        counted = self.column if values is None else values
        found, codes = self._group(kernels, counted, plc.aggregation.count(NullPolicy.EXCLUDE))
        wide = self.scatter(kernels, [kernels.convert(found, plc.DataType(TypeId.INT64))], codes)[0]
        return kernels.fill_null(wide, kernels.number(0))

    def spread_to_rows(self, kernels: Kernels, values: plc.Column) -> plc.Column:
        """A value of each group, on each row of it."""
        if self.column is None:
            zeros = kernels.repeat_scalar(kernels.number(0, pa.int32()), self.rows)
            return kernels.gather([values], zeros)[0]
        return kernels.gather([values], self.column)[0]

    def numbers(self, kernels: Kernels) -> plc.Column:
        """The group number of each row, as int32."""
        if self.column is None:
            return kernels.repeat_scalar(kernels.number(0, pa.int32()), self.rows)
        return self.column

    def filter(
        self, kernels: Kernels, mask: plc.Column, *columns: plc.Column
    ) -> tuple[GroupCodes, list[plc.Column]]:
        """These codes, and the columns, on the rows where the mask is true."""
        own = [] if self.column is None else [self.column]
        kept = kernels.keep([*own, *columns, mask], mask)
        rows = kept[-1].size()
        codes = GroupCodes(None if self.column is None else kept[0], rows, self.groups)
        return codes, kept[len(own) : -1]

    def _group(
        self, kernels: Kernels, values: plc.Column, aggregation: Aggregation
    ) -> tuple[plc.Column, plc.Column]:
        assert self.column is not None
        grouping = GroupBy(plc.Table([self.column]))
        keys, results = grouping.aggregate(
            [GroupByRequest(values, [aggregation])], stream=kernels.stream, mr=kernels.memory
        )
        return results[0].columns()[0], keys.columns()[0]

    def scatter(self, kernels: Kernels, found: Sequence[plc.Column], codes: plc.Column) -> list[plc.Column]:
        """What was found for some groups, in any order, in the groups' order; null for the others."""
        nothing = [
            plc.Column.all_null_like(column, self.groups, stream=kernels.stream, mr=kernels.memory)
            for column in found
        ]
        spread = plc.copying.scatter(
            plc.Table(list(found)), codes, plc.Table(nothing), stream=kernels.stream, mr=kernels.memory
        )
        return list(spread.columns())


@dataclass(frozen=True)
class Grouping:
    """Rows in groups.

    Attributes:
        codes: which group each row is in.
        keys: for each key column, its value in each group.
    """

    codes: GroupCodes
    keys: tuple[plc.Column, ...]


def sort_within_groups(
    kernels: Kernels,
    codes: GroupCodes,
    keys: Sequence[plc.Column] = (),
    orders: Sequence[Order] | None = None,
    nulls: Sequence[NullOrder] | None = None,
) -> plc.Column:
    """Positions of the rows by group, then by keys (ascending, nulls last), then as they come."""
    directions = [Order.ASCENDING] * len(keys) if orders is None else list(orders)
    places = [NullOrder.AFTER] * len(keys) if nulls is None else list(nulls)
    return plc.sorting.stable_sorted_order(
        plc.Table([codes.numbers(kernels), *keys]),
        [Order.ASCENDING, *directions],
        [NullOrder.AFTER, *places],
        stream=kernels.stream,
        mr=kernels.memory,
    )


def group_ends(kernels: Kernels, codes: GroupCodes, order: plc.Column, *, last: bool = False) -> plc.Column:
    """The first or last row of each group, of rows in an order by group; beyond all rows if it has none."""
    narrow = plc.DataType(TypeId.INT32)
    column = None if codes.column is None else kernels.gather([codes.column], order)[0]
    sorted_codes = GroupCodes(column, codes.rows, codes.groups)
    aggregation = plc.aggregation.max() if last else plc.aggregation.min()
    places = sorted_codes.reduce(kernels, kernels.positions(codes.rows), aggregation, narrow)
    beyond = kernels.number(codes.rows, pa.int32())
    found = kernels.gather([order], kernels.fill_null(places, beyond), nullify=True)[0]
    return kernels.fill_null(found, beyond)


def group_rows(kernels: Kernels, keys: Sequence[Held], rows: int) -> Grouping:
    """Number the rows by their keys; without keys all rows, even none, are one group.

    Values of dictionaries are told apart by their places there.
    """
    if not keys:
        return Grouping(GroupCodes(None, rows, 1), ())
    if not rows:
        return Grouping(GroupCodes(kernels.nulls(0, pa.int32()), 0, 0), tuple(map(column_of, keys)))
    if takes_keys(keys):
        late = [key for key in keys if isinstance(key, LateColumn) and _dictionary(key) is not None]
        if rows >= MANY_ROWS and len(late) == len(keys):
            combined = number_combinations(kernels, late, rows)
            if combined is not None:
                firsts = take_rows(kernels, keys, combined.firsts)
                codes = GroupCodes(combined.codes, rows, combined.groups)
                return Grouping(codes, tuple(map(column_of, firsts)))
        coded = [_coded(kernels, key) for key in keys]
        hashed = hash_groups(kernels, coded, rows)
        # Keys of the groups; what was copied to be hashed need not be looked for once more.
        own = [key if _dictionary(key) is not None else found for key, found in zip(keys, coded, strict=True)]
        firsts = take_rows(kernels, own, hashed.firsts)
        return Grouping(GroupCodes(hashed.codes, rows, hashed.groups), tuple(map(column_of, firsts)))
    plain = [canonical(kernels, column_of(key)) for key in keys]
    distinct, sorted_codes = plc.transform.encode(plc.Table(plain), stream=kernels.stream, mr=kernels.memory)
    groups = distinct.num_rows()
    in_order = GroupCodes(kernels.convert(sorted_codes, plc.DataType(TypeId.INT32)), rows, groups)
    first = in_order.reduce(
        kernels, kernels.positions(rows), plc.aggregation.min(), plc.DataType(TypeId.INT32)
    )
    order = plc.sorting.stable_sorted_order(
        plc.Table([first]), [Order.ASCENDING], [NullOrder.AFTER], stream=kernels.stream, mr=kernels.memory
    )
    number = _invert(kernels, order, groups)
    codes = GroupCodes(in_order.spread_to_rows(kernels, number), rows, groups)
    return Grouping(codes, tuple(kernels.gather(distinct.columns(), order)))


def _coded(kernels: Kernels, key: Held) -> plc.Column:
    dictionary = _dictionary(key)
    if dictionary is None:
        return canonical(kernels, column_of(key))
    assert isinstance(key, LateColumn)

    def number(values: plc.Column) -> tuple[plc.Column, int]:
        found = hash_groups(kernels, [values], values.size())
        return found.codes, found.groups

    return dictionary.key_codes(kernels, key.places, number)


def _dictionary(key: Held) -> Dictionary | None:
    """Whose places tell the key's values apart: not of floats, of which several stand for one zero or NaN."""
    return key.dictionary if isinstance(key, LateColumn) and key.type().id() not in _FLOATS else None


def _invert(kernels: Kernels, order: plc.Column, groups: int) -> plc.Column:
    """Where each position is in an order of all of them."""
    places = kernels.positions(groups)
    spread = plc.copying.scatter(
        plc.Table([places]), order, plc.Table([places]), stream=kernels.stream, mr=kernels.memory
    )
    return spread.columns()[0]


def canonical(kernels: Kernels, key: plc.Column) -> plc.Column:
    """The column with one NaN and one zero for all."""
    if key.type().id() not in _FLOATS:
        return key
    return plc.replace.normalize_nans_and_zeros(key, stream=kernels.stream, mr=kernels.memory)


def _empty_groups(kernels: Kernels, values: plc.Column, kind: plc.DataType, groups: int = 1) -> plc.Column:
    nothing = kernels.convert(values, kind) if values.type().id() != kind.id() else values
    return plc.Column.all_null_like(nothing, groups, stream=kernels.stream, mr=kernels.memory)
