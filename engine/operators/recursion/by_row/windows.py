"""Calls over windows as functions of rows: numbers of rows and peers, neighbours, totals of partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import pyarrow as pa

from bamquery.engine.operators.recursion.by_row.expressions import row_function, tuple_function
from bamquery.engine.operators.recursion.by_row.grouping import row_aggregate
from bamquery.engine.operators.recursion.by_row.values import LeftToDeviceError, Row
from bamquery.plan import nodes
from bamquery.plan.expressions import Expression, Literal, SortKey
from bamquery.plan.windows import WindowCall

_Rows: TypeAlias = list[Row]
_Call: TypeAlias = Callable[[_Rows, list[int]], Sequence[Any]]
"""Values for the rows of a partition, which are in order; of each row its first peer's place."""

_MOST: Final = 512
"""Rows of a partition: a device sorts more of them faster."""


def windowed_rows(plan: nodes.Window) -> Callable[[_Rows], _Rows] | None:
    """Rows with the values of a window's calls, in its order; None where that is not for rows.

    It raises `LeftToDeviceError`.
    """
    peer = tuple_function([key.expression for key in plan.order])
    partition = tuple_function(plan.partition)
    sorts = [_sort(key) for key in plan.order]
    known = [sort for sort in sorts if sort is not None]
    calls = [call for call in (_call(call, plan.order) for call in plan.calls) if call is not None]
    # Of numbers that are equal and not the same (0.0 and -0.0) a device says which are peers.
    keys = [*plan.partition, *(key.expression for key in plan.order)]
    if peer is None or partition is None or any(key.type == pa.float64() for key in keys):
        return None
    if len(known) < len(sorts) or len(calls) < len(plan.calls):
        return None

    def windowed(rows: _Rows) -> _Rows:
        if len(rows) > _MOST:
            raise LeftToDeviceError
        partitions: dict[Row, _Rows] = {}
        for row in rows:
            partitions.setdefault(partition(row), []).append(row)
        made: _Rows = []
        for members in partitions.values():
            for sort in reversed(known):  # each is stable: the first key is the last to decide
                sort(members)
            firsts = _first_peers([peer(row) for row in members])
            values = [call(members, firsts) for call in calls]
            made.extend([(*row, *own) for row, own in zip(members, zip(*values, strict=True), strict=True)])
        return made

    return windowed


def _sort(key: SortKey) -> Callable[[_Rows], None] | None:
    function = row_function(key.expression)
    if function is None:
        return None
    descending = key.descending
    null_first = key.nulls_first != descending  # before they are turned round

    def place(row: Row) -> tuple[bool, Any]:
        value = function(row)
        return (value is None) != null_first, value

    return lambda rows: rows.sort(key=place, reverse=descending)


def _first_peers(keys: Sequence[Row]) -> list[int]:
    firsts: list[int] = []
    for place, key in enumerate(keys):
        firsts.append(firsts[-1] if place and keys[place - 1] == key else place)
    return firsts


def _call(window: WindowCall, order: Sequence[SortKey]) -> _Call | None:
    call = window.call
    if window.ignore_nulls or call.distinct or call.filter is not None or call.order:
        return None
    if call.function in _NUMBERS:
        return _NUMBERS[call.function]
    if call.function in ("lag", "lead"):
        return _neighbour(call.arguments, -1 if call.function == "lag" else 1)
    return _whole_partition(window, order)


def _row_numbers(rows: _Rows, firsts: list[int]) -> Sequence[int]:
    return range(1, len(rows) + 1)


def _ranks(rows: _Rows, firsts: list[int]) -> Sequence[int]:
    return [first + 1 for first in firsts]


def _dense_ranks(rows: _Rows, firsts: list[int]) -> Sequence[int]:
    ranks: list[int] = []
    for place, first in enumerate(firsts):
        ranks.append((ranks[-1] if ranks else 0) + (place == first))
    return ranks


_NUMBERS: Final[Mapping[str, _Call]] = MappingProxyType(
    {"row_number": _row_numbers, "rank": _ranks, "dense_rank": _dense_ranks}
)


def _neighbour(arguments: Sequence[Expression], direction: int) -> _Call | None:
    """The value so many rows away, a number that is the same for all rows, or the row's default."""
    value, offset, default = arguments
    function, otherwise = row_function(value), row_function(default)
    away = offset.value.as_py() if isinstance(offset, Literal) else None
    if function is None or otherwise is None or not isinstance(away, int):
        return None
    step = direction * away

    def values(rows: _Rows, firsts: list[int]) -> Sequence[Any]:
        last = len(rows)
        return [
            function(rows[place + step]) if 0 <= place + step < last else otherwise(row)
            for place, row in enumerate(rows)
        ]

    return values


def _whole_partition(window: WindowCall, order: Sequence[SortKey]) -> _Call | None:
    """An aggregate whose frame is the partition."""
    frame = window.frame
    to_the_end = frame.end.kind == "unbounded following" or (
        not order and frame.end.kind == "current row" and frame.unit != "rows"
    )
    aggregate = row_aggregate(window.call)
    if frame.start.kind != "unbounded preceding" or not to_the_end or frame.exclude != "no others":
        return None
    return None if aggregate is None else lambda rows, firsts: [aggregate(rows)] * len(rows)
