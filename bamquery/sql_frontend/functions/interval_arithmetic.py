"""Operators where an interval or a time of day takes part: which function computes them, or none."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.data_types.type_groups import INTERVAL
from bamquery.plan.expressions import Call, Expression
from bamquery.sql_frontend.functions.coercion import (
    coerce,
    coerce_beside,
    common_type,
    constant_nulls,
    is_null,
    is_string_literal,
)

_BIGINT: Final = pa.int64()
_DOUBLE: Final = pa.float64()
_MICROSECONDS: Final = pa.timestamp("us")


def shift(function: str, moment: Expression, span: Expression) -> Expression:
    """A date, time or timestamp, so much later or earlier."""
    kind: Any = moment.type
    kind = pa.time64("us") if pa.types.is_time64(kind) else pa.timestamp("us", getattr(kind, "tz", None))
    return Call(function, (coerce_beside(moment, kind, [span]), span), kind)


def arithmetic(function: str, left: Expression, right: Expression) -> Expression | None:
    """`add`, `subtract`, `multiply` or `divide` where an interval or a time of day takes part, else None."""
    spans = types.is_interval(left.type), types.is_interval(right.type)
    if function in ("add", "subtract"):
        return _sum(function, left, right, spans)
    if not any(spans):
        return None
    return _product(function, left, right, spans)


def _sum(function: str, left: Expression, right: Expression, spans: tuple[bool, bool]) -> Expression | None:
    if any(spans):
        if spans[0] and is_string_literal(right):
            right, spans = coerce(right, INTERVAL), (True, True)
        if spans[1] and is_string_literal(left):
            left, spans = coerce(left, INTERVAL), (True, True)
        if all(spans) or is_null(left) or is_null(right):
            both = (coerce(left, INTERVAL), coerce(right, INTERVAL))
            return Call(f"interval_{function}", both, INTERVAL)
        moment, span = (left, right) if spans[1] else (right, left)
        if _is_moment(moment.type) and (function == "add" or spans[1]):
            return shift(f"{function}_interval", moment, span)
        return None
    if function == "subtract" and _are_timestamps(left.type, right.type):
        kind: Any = common_type([left, right])
        # Each by itself: their common type may have no days as far away as a DATE.
        values = [
            coerce_beside(side, pa.timestamp("us", kind.tz), constant_nulls(other))
            for side, other in ((left, right), (right, left))
        ]
        return Call("timestamp_difference", tuple(values), INTERVAL)
    if function == "add":
        for day, clock in ((left, right), (right, left)):
            if pa.types.is_date(day.type) and clock.type == pa.time64("us"):
                return Call("add_time", (day, clock), _MICROSECONDS)
    return None


def _are_timestamps(left: pa.DataType, right: pa.DataType) -> bool:
    """Timestamps, or one and a date."""
    kinds = (left, right)
    return any(map(pa.types.is_timestamp, kinds)) and all(
        pa.types.is_timestamp(kind) or pa.types.is_date(kind) for kind in kinds
    )


def _is_moment(kind: pa.DataType) -> bool:
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_time64(kind)


def _product(
    function: str, left: Expression, right: Expression, spans: tuple[bool, bool]
) -> Expression | None:
    if function == "divide":
        if not spans[0] or spans[1] or not _is_number(right):
            return None
        return Call("interval_divide", (left, coerce(right, _DOUBLE)), INTERVAL)
    if function != "multiply" or all(spans):
        return None
    span, factor = (left, right) if spans[0] else (right, left)
    if not _is_number(factor):
        return None
    low, high = types.integer_range(_BIGINT)
    if types.is_integral(factor.type) and all(low <= end <= high for end in types.integer_range(factor.type)):
        return Call("interval_times", (span, coerce(factor, _BIGINT)), INTERVAL)
    return Call("interval_scale", (span, coerce(factor, _DOUBLE)), INTERVAL)


def _is_number(value: Expression) -> bool:
    if is_null(value):
        return True
    return types.is_numeric(value.type) or is_string_literal(value)
