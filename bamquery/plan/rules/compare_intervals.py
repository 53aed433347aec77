"""Intervals that are equal though they are written otherwise, one month and 30 days, are one key.

Joins, groups, partitions and the like find equal keys by their parts or bits, of which equal intervals may
have others: they get numbers instead, which are equal where the intervals are, and order as these do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Expression, Literal, transform
from bamquery.plan.literals.scalars import scalar
from bamquery.plan.nodes import Aggregate, Join, Plan, Project, Window
from bamquery.plan.rewriting import map_key, transform_plan
from bamquery.plan.windows import Bound, WindowCall

_COMPARISONS: Final = frozenset(
    {
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("is_distinct_from", "is_not_distinct_from"),
    }
)
_BY_ANOTHER: Final = frozenset({"arg_min", "arg_max", "arg_min_null", "arg_max_null"})
_EXTREMES: Final[Mapping[str, str]] = MappingProxyType({"min": "arg_min", "max": "arg_max"})


def compare_intervals(plan: Plan) -> Plan:
    """Put numbers in the place of intervals wherever these are keys."""
    return transform_plan(plan, _compare_by_numbers)


def _compare_by_numbers(plan: Plan) -> Plan:
    match plan:
        case Join(condition=condition) if condition is not None:
            return replace(plan, condition=transform(condition, _comparison))
        case Aggregate():
            return _group_by_numbers(plan)
        case Window(partition=partition, order=order, calls=calls):
            return replace(
                plan,
                partition=_numbers(partition),
                order=tuple(map_key(key, _number) for key in order),
                calls=tuple(map(_window_over_numbers, calls)),
            )
        case _:
            return plan


def _number(expression: Expression) -> Expression:
    if not types.is_interval(expression.type):
        return expression
    return Call("interval_order", (expression,), types.HUGEINT)


def _numbers(expressions: Sequence[Expression]) -> tuple[Expression, ...]:
    return tuple(map(_number, expressions))


def _comparison(expression: Expression) -> Expression:
    if isinstance(expression, Call) and expression.function in _COMPARISONS:
        arguments = _numbers(expression.arguments)
        return expression if arguments == expression.arguments else replace(expression, arguments=arguments)
    return expression


def _group_by_numbers(plan: Aggregate) -> Plan:
    """Groups by numbers; the interval of a group is that of its first row."""
    aggregates = tuple(map(_call_over_numbers, plan.aggregates))
    keys = _numbers(plan.keys)
    if keys == plan.keys:
        return plan if aggregates == plan.aggregates else replace(plan, aggregates=aggregates)
    of_keys = [i for i, key in enumerate(plan.keys) if types.is_interval(key.type)]
    firsts = tuple(AggregateCall("first", (plan.keys[i],), plan.keys[i].type) for i in of_keys)
    width = len(keys) + len(aggregates)
    names = (*plan.names[:width], *(plan.names[i] for i in of_keys), *plan.names[width:])
    grouped = Aggregate(plan.child, keys, (*aggregates, *firsts), names, plan.sets)
    fields = grouped.fields
    columns = [ColumnRef(i, field.name, field.type) for i, field in enumerate(fields)]
    shown: list[Expression] = [*columns[:width], *columns[width + len(firsts) :]]
    for place, position in enumerate(of_keys):
        first: Expression = columns[width + place]
        if plan.sets:  # null in the groups of sets that are without the key
            is_null = Call("is_null", (columns[position],), pa.bool_())
            first = Call("case", (is_null, Literal(scalar(None, first.type)), first), first.type)
        shown[position] = first
    return Project(grouped, tuple(shown), plan.names)


def _call_over_numbers(call: AggregateCall) -> AggregateCall:
    """An aggregate that compares intervals over their numbers; others as they are."""
    match call:
        case AggregateCall(function=name, arguments=(value,)) if name in _EXTREMES and types.is_interval(
            value.type
        ):
            return replace(
                call, function=_EXTREMES[name], arguments=(value, _number(value)), distinct=False, order=()
            )
        case AggregateCall(function="count", distinct=True):
            return replace(call, arguments=_numbers(call.arguments))
        case AggregateCall(function=name, arguments=(value, by)) if name in _BY_ANOTHER:
            return replace(call, arguments=(value, _number(by)))
        case _:
            return call


def _window_over_numbers(call: WindowCall) -> WindowCall:
    start, end = (_bound_over_numbers(bound) for bound in (call.frame.start, call.frame.end))
    return replace(call, call=_call_over_numbers(call.call), frame=replace(call.frame, start=start, end=end))


def _bound_over_numbers(bound: Bound) -> Bound:
    if bound.key is None or bound.offset is None:
        return bound
    return replace(bound, offset=_number(bound.offset), key=_number(bound.key))
