"""GROUP BY, DISTINCT and aggregates as functions of numpy's arrays: rows by groups, and each group a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.data_types.type_groups import HUGEINT
from bamquery.engine.operators.recursion.by_column.expressions import column_function, functions_of
from bamquery.engine.operators.recursion.by_column.key_numbers import KeyNumbers
from bamquery.engine.operators.recursion.by_column.runs import run_sizes, run_starts, stable_order
from bamquery.engine.operators.recursion.by_column.texts import TextCodes
from bamquery.engine.operators.recursion.by_column.values import (
    LIMITS,
    TEXT,
    Column,
    ColumnFunction,
    Columns,
    keep,
    numpy_type,
    spread,
    with_bounds,
)
from bamquery.engine.operators.recursion.by_row.values import WHOLE, LeftToDeviceError
from bamquery.plan import nodes
from bamquery.plan.expressions import AggregateCall

_EXACT: Final = 1 << 53
"""Whole numbers below it are DOUBLEs as they are."""


class _Groups(NamedTuple):
    """Rows by groups.

    Attributes:
        order: places of the rows, group by group, in a group as they come; None: as they are.
        starts: where each group begins in this order.
        sizes: rows of each.
    """

    order: NDArray[np.int64] | None
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]


_Aggregate: TypeAlias = Callable[[Columns, int, _Groups], Column]


def grouped_columns(
    plan: nodes.Aggregate, texts: TextCodes
) -> Callable[[Columns, int], tuple[Columns, int]] | None:
    """The groups of so many rows; None where that is not for arrays."""
    calls = [_aggregate(call, texts) for call in plan.aggregates]
    keys = functions_of(plan.keys, texts)
    known = [call for call in calls if call is not None]
    kinds = [key.type for key in plan.keys]
    # Of keys that are equal and not the same (0.0 and -0.0), which one is given is for a device to say.
    if plan.sets or keys is None or len(known) < len(calls) or pa.float64() in kinds:
        return None
    if not keys:
        return _all_in_one(known, plan.aggregates)
    nulls_equal = [True] * len(kinds)

    def groups(columns: Columns, rows: int) -> tuple[Columns, int]:
        if not rows:
            return [], 0
        values = [spread(key(columns), rows) for key in keys]
        codes, _ = KeyNumbers(values, kinds, nulls_equal).codes(values, rows)
        order = stable_order(codes)
        starts = run_starts(codes if order is None else codes[order])
        firsts = starts if order is None else order[starts]
        found = _Groups(order, starts, run_sizes(starts, rows))
        made = [keep(value, firsts) for value in values]
        return [*made, *[call(columns, rows, found) for call in known]], len(starts)

    return groups


def _all_in_one(
    calls: Sequence[_Aggregate], given: Sequence[AggregateCall]
) -> Callable[[Columns, int], tuple[Columns, int]]:
    """One group, also of no rows."""
    nulls = [
        Column(
            np.zeros(1, numpy_type(call.type)), None if call.function in _COUNTS else np.zeros(1, np.bool_)
        )
        for call in given
    ]

    def group(columns: Columns, rows: int) -> tuple[Columns, int]:
        if not rows:
            return nulls, 1
        found = _Groups(None, np.zeros(1, np.int64), np.full(1, rows))
        return [call(columns, rows, found) for call in calls], 1

    return group


def _aggregate(call: AggregateCall, texts: TextCodes) -> _Aggregate | None:
    if call.distinct or call.filter is not None or call.order or call.parameter is not None:
        return None
    if call.function == "count_star":
        return lambda columns, rows, groups: _counted(groups.sizes, rows)
    if len(call.arguments) != 1:
        return None
    (argument,) = call.arguments
    function, make = column_function(argument, texts), _CALLS.get(call.function)
    return None if function is None or make is None else make(function, argument.type, call.type)


def _counted(counts: NDArray[np.int64], rows: int) -> Column:
    return Column(counts, None, 0, rows)


def _ordered(column: Column, rows: int, groups: _Groups) -> Column:
    column = spread(column, rows)
    return column if groups.order is None else keep(column, groups.order)


def _counts(column: Column, groups: _Groups) -> NDArray[np.int64]:
    """Values of each group that are not null."""
    if column.valid is None:
        return groups.sizes
    counts: NDArray[np.int64] = np.add.reduceat(column.valid, groups.starts, dtype=np.int64)
    return counts


def _count(function: ColumnFunction, own: pa.DataType, kind: pa.DataType) -> _Aggregate | None:
    return lambda columns, rows, groups: _counted(
        _counts(_ordered(function(columns), rows, groups), groups), rows
    )


def _totals(column: Column, kind: pa.DataType, groups: _Groups) -> NDArray[np.int64]:
    """Each group's sum, where no sum of some of the values can be beyond 64 bits."""
    rows, most = len(column.values), 1 << 63
    if rows * max(-column.low, column.high) >= most:
        column = with_bounds(column.values, column.valid, kind)
        if rows * max(-column.low, column.high) >= most:
            raise LeftToDeviceError
    values = column.values if column.valid is None else np.where(column.valid, column.values, 0)
    totals: NDArray[np.int64] = np.add.reduceat(values.astype(np.int64), groups.starts)
    return totals


def _sum(function: ColumnFunction, own: pa.DataType, kind: pa.DataType) -> _Aggregate | None:
    if own not in WHOLE or kind != HUGEINT:
        return None

    def total(columns: Columns, rows: int, groups: _Groups) -> Column:
        column = _ordered(function(columns), rows, groups)
        some = None if column.valid is None else _counts(column, groups) > 0
        return with_bounds(_totals(column, own, groups), some, kind)

    return total


def _average(function: ColumnFunction, own: pa.DataType, kind: pa.DataType) -> _Aggregate | None:
    if own not in WHOLE or own == HUGEINT or kind != pa.float64():
        return None

    def mean(columns: Columns, rows: int, groups: _Groups) -> Column:
        column = _ordered(function(columns), rows, groups)
        counts, totals = _counts(column, groups), _totals(column, own, groups)
        if int(np.abs(totals).max()) >= _EXACT:
            raise LeftToDeviceError
        return Column(totals / np.maximum(counts, 1), None if column.valid is None else counts > 0)

    return mean


def _extreme(choose: Any, *, least: bool) -> Callable[..., _Aggregate | None]:
    def make(function: ColumnFunction, own: pa.DataType, kind: pa.DataType) -> _Aggregate | None:
        if own != kind or own not in LIMITS or own == TEXT:
            return None

        def extreme(columns: Columns, rows: int, groups: _Groups) -> Column:
            column = _ordered(function(columns), rows, groups)
            values, some = column.values, None
            if column.valid is not None:
                # No value is beyond the bound, so that a null is chosen where nothing else is there.
                bound = np.array(column.high if least else column.low, values.dtype)
                values, some = np.where(column.valid, values, bound), _counts(column, groups) > 0
            return Column(choose.reduceat(values, groups.starts), some, column.low, column.high)

        return extreme

    return make


_COUNTS: Final = ("count_star", "count")
_CALLS: Final[Mapping[str, Callable[..., _Aggregate | None]]] = MappingProxyType(
    {
        "count": _count,
        "sum": _sum,
        "avg": _average,
        "min": _extreme(np.minimum, least=True),
        "max": _extreme(np.maximum, least=False),
    }
)
