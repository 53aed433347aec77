"""arg_min and the like with an order of rows: one row by an order, of which no value is gathered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.plan.expressions import AggregateCall, Call, SortKey

_ONE_ROW: Final[Mapping[str, tuple[str, bool]]] = MappingProxyType(
    {
        "arg_min": ("any_value", False),
        "arg_min_null": ("first", False),
        "arg_max": ("any_value", True),
        "arg_max_null": ("first", True),
    }
)
"""What takes the same row by an order that begins with `by`, and whether that is descending."""


def rewrite_ordered_extremes(calls: Sequence[AggregateCall]) -> tuple[AggregateCall, ...]:
    """The calls, `arg_min(x, by ORDER BY o)` as `any_value(x ORDER BY by, o)` of rows that have a `by`."""
    return tuple(_one_row(call) if call.order and call.function in _ONE_ROW else call for call in calls)


def _one_row(call: AggregateCall) -> AggregateCall:
    function, descending = _ONE_ROW[call.function]
    value, by = call.arguments
    counted = Call("is_not_null", (by,), pa.bool_())
    if call.filter is not None:
        counted = Call("and", (call.filter, counted), pa.bool_())
    order = (SortKey(by, descending=descending), *call.order)
    return replace(call, function=function, arguments=(value,), filter=counted, order=order)
