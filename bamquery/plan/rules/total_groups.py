"""What is asked of all rows is asked of their groups, where the same rows are grouped, too."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pyarrow as pa

from bamquery.plan.expressions import AggregateCall, ColumnRef
from bamquery.plan.nodes import Aggregate, Join, Plan
from bamquery.plan.rewriting import nodes_of, transform_plan

_OF_ANSWERS: Final = frozenset({"sum", "min", "max"})
"""Aggregates that are the same of groups' answers, whatever the groups."""
_WIDEST: Final = 38
"""Digits of sums: those of sums are of the same type."""


def total_groups(plan: Plan) -> Plan:
    """Take totals of the groups of a join's rows, where the plan has both: the join is computed once.

    Only where nothing else is asked of the groups, so that whoever reads them reads the same columns, and of
    a join: other rows are as quickly read again as groups are kept.
    """
    found = [node for node in nodes_of(plan) if isinstance(node, Aggregate) and _is_simple(node)]
    totals = [node for node in found if not node.keys]
    grouped = [node for node in found if node.keys]
    if not totals or not grouped:
        return plan
    groups = {
        id(total): group
        for total in totals
        for group in grouped
        if total.child is group.child and set(total.aggregates) == set(group.aggregates)
    }
    if not groups:
        return plan

    def rewrite(node: Plan) -> Plan:
        group = groups.get(id(node))
        return node if group is None or not isinstance(node, Aggregate) else _total(node, group)

    return transform_plan(plan, rewrite)


def _total(total: Aggregate, group: Aggregate) -> Aggregate:
    fields = group.fields
    places = {call: len(group.keys) + i for i, call in enumerate(group.aggregates)}
    calls = []
    for call in total.aggregates:
        place = places[call]
        calls.append(replace(call, arguments=(ColumnRef(place, fields[place].name, call.type),)))
    return replace(total, child=group, aggregates=tuple(calls))


def _is_simple(node: Aggregate) -> bool:
    calls = node.aggregates
    return not node.sets and bool(calls) and all(map(_adds_up, calls)) and _joins(node.child)


def _joins(plan: Plan) -> bool:
    return any(isinstance(node, Join) for node in nodes_of(plan))


def _adds_up(call: AggregateCall) -> bool:
    """Whether it is the same of groups' answers, to the last bit and in the same type."""
    if call.function not in _OF_ANSWERS or call.distinct or call.order or call.filter is not None:
        return False
    exact = pa.types.is_decimal(call.type) and call.type.precision == _WIDEST
    return exact if call.function == "sum" else not pa.types.is_floating(call.type)
