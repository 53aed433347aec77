"""GROUP BY and aggregates as functions of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import pyarrow as pa

from bamquery.data_types.type_groups import HUGEINT
from bamquery.engine.operators.recursion.by_row.expressions import row_function, tuple_function
from bamquery.engine.operators.recursion.by_row.values import DAYS, WHOLE, LeftToDeviceError, Row, RowFunction
from bamquery.plan import nodes
from bamquery.plan.expressions import AggregateCall

_Rows: TypeAlias = list[Row]
RowAggregate: TypeAlias = Callable[[_Rows], Any]

_EXACT: Final = 1 << 53
"""Whole numbers below it are DOUBLEs as they are."""


def grouped_rows(plan: nodes.Aggregate) -> Callable[[_Rows], _Rows] | None:
    """The groups of some rows, in the order in which they first appear; None where that is not for rows."""
    calls = [row_aggregate(call) for call in plan.aggregates]
    key = tuple_function(plan.keys)
    known = [call for call in calls if call is not None]
    # Of keys that are equal and not the same (0.0 and -0.0), which one is given is for a device to say.
    if plan.sets or key is None or len(known) < len(calls) or any(k.type == pa.float64() for k in plan.keys):
        return None
    if not plan.keys:
        return lambda rows: [tuple([call(rows) for call in known])]

    def groups(rows: _Rows) -> _Rows:
        found: dict[Row, _Rows] = {}
        for row in rows:
            found.setdefault(key(row), []).append(row)
        return [(*own, *[call(members) for call in known]) for own, members in found.items()]

    return groups


def row_aggregate(call: AggregateCall) -> RowAggregate | None:
    """What gives an aggregate of some rows, or raises `LeftToDeviceError`; None: it is not for rows."""
    if call.distinct or call.filter is not None or call.order or call.parameter is not None:
        return None
    if call.function == "count_star":
        return len
    if len(call.arguments) != 1:
        return None
    (argument,) = call.arguments
    function, make = row_function(argument), _CALLS.get(call.function)
    return None if function is None or make is None else make(function, argument.type, call.type)


def _count(function: RowFunction, own: pa.DataType, kind: pa.DataType) -> RowAggregate | None:
    return lambda rows: sum(function(row) is not None for row in rows)


def _sum(function: RowFunction, own: pa.DataType, kind: pa.DataType) -> RowAggregate | None:
    if own not in WHOLE or kind != HUGEINT:
        return None
    low, high = WHOLE[HUGEINT]

    def total(rows: _Rows) -> int | None:
        values = [value for row in rows if (value := function(row)) is not None]
        found: int = sum(values)
        if not low <= found <= high:
            raise LeftToDeviceError
        return found if values else None

    return total


def _average(function: RowFunction, own: pa.DataType, kind: pa.DataType) -> RowAggregate | None:
    if own not in WHOLE or own == HUGEINT or kind != pa.float64():
        return None

    def mean(rows: _Rows) -> float | None:
        values = [value for row in rows if (value := function(row)) is not None]
        if not values:
            return None
        total: int = sum(values)
        if abs(total) >= _EXACT:
            raise LeftToDeviceError
        return total / len(values)

    return mean


def _extreme(choose: Callable[..., Any]) -> Callable[..., RowAggregate | None]:
    def make(function: RowFunction, own: pa.DataType, kind: pa.DataType) -> RowAggregate | None:
        if own != kind or not (own in WHOLE or own in DAYS or own == pa.large_string()):
            return None
        return lambda rows: choose((v for row in rows if (v := function(row)) is not None), default=None)

    return make


_CALLS: Final[Mapping[str, Callable[..., RowAggregate | None]]] = MappingProxyType(
    {"count": _count, "sum": _sum, "avg": _average, "min": _extreme(min), "max": _extreme(max)}
)
