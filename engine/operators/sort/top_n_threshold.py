"""What rows must reach to be among the first ones in an order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Generic

import pyarrow as pa

from bamquery.data_types.type_groups import value_type
from bamquery.engine.device import Device, Frame
from bamquery.engine.operators.base.dynamic_filter import DynamicCondition, DynamicFilter, has_ordered_bounds
from bamquery.engine.operators.base.operator import Operator
from bamquery.plan.expressions import Cast, Literal, SortKey
from bamquery.plan.nodes import Field


class TopNThreshold(Generic[Frame]):
    """The last of the first `count` values of `key` so far, for a scan that need not give later ones.

    Later keys decide among equal values of the first, so these are still wanted.
    """

    def __init__(self, key: SortKey, count: int) -> None:
        kind = value_type(key.expression.type)
        plain = key.expression if kind == key.expression.type else Cast(key.expression, kind)
        self._key: Final = replace(key, expression=plain)
        self._count: Final = count
        self._dynamic_filter: Final = DynamicFilter(f"first {count:,} in order", moves=True)
        self.is_known = False
        """Whether rows have told of it."""

    def is_used(self, child: Operator[Frame]) -> bool:
        """Whether a scan below reads less by it."""
        if not has_ordered_bounds(self._key.expression.type) or not child.push_dynamic_filter(
            self._key.expression, self._dynamic_filter
        ):
            return False
        child.prefer_order(self._key)
        return True

    def start(self, child: Operator[Frame]) -> None:
        """Begin with what is known before a row is read."""
        bound = child.top_n_bound(self._key, self._count)
        if bound is not None:
            self._dynamic_filter.set_conditions([bound])

    def update(self, device: Device[Frame], last: Frame) -> None:
        """Take the last one of the first rows so far.

        Raises:
            ExecutionError: the key cannot be computed.
        """
        self.is_known = True
        key = device.evaluate([self._key.expression], last)
        fields = [Field("key", self._key.expression.type)]
        condition = reaching_condition(device.to_arrow(key, fields).column(0)[0], self._key)
        if condition is not None:
            self._dynamic_filter.set_conditions([condition])


def reaching_condition(value: pa.Scalar[Any], key: SortKey) -> DynamicCondition | None:
    """What values fulfil that do not come after `value` in the order of the key; None: all do."""
    if value.is_valid:
        function = "greater_equal" if key.descending else "less_equal"
        return DynamicCondition(function, (Literal(value),), or_null=key.nulls_first)
    return DynamicCondition(None) if key.nulls_first else None
