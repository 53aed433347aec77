"""The difference of two timestamps as a number where only its length counts: no interval need be made.

Devices without intervals compute it then, and those with them are quicker.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.plan.expressions import Call, Cast, Expression, Literal
from bamquery.plan.literals.scalars import scalar
from bamquery.plan.nodes import Plan
from bamquery.plan.rewriting import rewrite_everywhere

_COMPARISONS: Final = frozenset(
    {
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("is_distinct_from", "is_not_distinct_from"),
    }
)
_BIGINT: Final = pa.int64()
_DOUBLE: Final = pa.float64()
_DAY_MICROSECONDS: Final = 86_400 * 10**6


def measure_durations(plan: Plan) -> Plan:
    """Compare differences with constant intervals in microseconds, and take their seconds from these."""
    return rewrite_everywhere(plan, _measure)


def _measure(expression: Expression) -> Expression:
    match expression:
        case Call(function=function, arguments=(left, right), type=kind) if function in _COMPARISONS:
            sides = _length(left), _length(right)
            if sides[0] is None or sides[1] is None or not (_is_difference(left) or _is_difference(right)):
                return expression
            return Call(function, (sides[0], sides[1]), kind)
        case Call(function="interval_microseconds", arguments=(span,)) if _is_difference(span):
            return _length(span) or expression
        case Call(function="interval_milliseconds", arguments=(span,)) if _is_difference(span):
            length = _length(span)
            thousand = Literal(scalar(1000, _BIGINT))
            return expression if length is None else Call("floor_divide", (length, thousand), _BIGINT)
        case Call(function="interval_seconds", arguments=(span,)) if _is_difference(span):
            length = _length(span)
            return expression if length is None else _seconds(length)
        case _:
            return expression


def _is_difference(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.function == "timestamp_difference"


def _length(expression: Expression) -> Expression | None:
    """Microseconds of a difference or of a constant interval, a month taken for 30 days as it compares."""
    match expression:
        case Call(function="timestamp_difference", arguments=(later, earlier)):
            counts = tuple(Call("to_count", (moment,), _BIGINT) for moment in (later, earlier))
            return Call("subtract", counts, _BIGINT)
        case Literal(type=kind, is_null=False) if types.is_interval(kind):
            parts: Any = expression.value.as_py()
            total = (parts.months * 30 + parts.days) * _DAY_MICROSECONDS + parts.nanoseconds // 1000
            low, high = types.integer_range(_BIGINT)
            return Literal(scalar(total, _BIGINT)) if low <= total <= high else None
        case _:
            return None


def _seconds(length: Expression) -> Expression:
    """Days and what is left by themselves, as an interval has them: rounding is the same then."""
    day = Literal(scalar(_DAY_MICROSECONDS, _BIGINT))
    days = Call("floor_divide", (length, day), _BIGINT)
    rest = Call("modulo", (length, day), _BIGINT)
    whole = Call("multiply", (days, Literal(scalar(86_400, _BIGINT))), _BIGINT)
    fraction = Call("divide", (Cast(rest, _DOUBLE), Literal(scalar(1e6, _DOUBLE))), _DOUBLE)
    return Call("add", (Cast(whole, _DOUBLE), fraction), _DOUBLE)
