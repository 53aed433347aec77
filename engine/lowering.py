"""Logical plan to physical operators: which one does what, and what a device refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bamquery.engine.device import Device, Frame
from bamquery.engine.join_lowering import lower_join
from bamquery.engine.operators.aggregate import Aggregate
from bamquery.engine.operators.collect_sets import CollectSets
from bamquery.engine.operators.distinct_aggregate import DistinctAggregate, without_needless_distinct
from bamquery.engine.operators.expand_sets import SET_NUMBER, ExpandSets
from bamquery.engine.operators.filter import Filter
from bamquery.engine.operators.first_rows import FirstRows
from bamquery.engine.operators.limit import Limit
from bamquery.engine.operators.operator import Operator
from bamquery.engine.operators.ordered_extremes import without_ordered_extremes
from bamquery.engine.operators.project import Project
from bamquery.engine.operators.repeat import Repeat
from bamquery.engine.operators.roll_up import RollUp, can_roll_up
from bamquery.engine.operators.sample import Sample
from bamquery.engine.operators.scan import make_scan
from bamquery.engine.operators.single_row import SingleRow
from bamquery.engine.operators.sort import Sort
from bamquery.engine.operators.top_rows import TopRows
from bamquery.engine.operators.union import Union
from bamquery.engine.operators.values import Values
from bamquery.engine.operators.window import Window
from bamquery.engine.recursion_lowering import lower_recursion
from bamquery.engine.settings import Settings
from bamquery.engine.shared_plans import SharedPlans
from bamquery.errors import Reason, UnsupportedError
from bamquery.plan import nodes
from bamquery.plan.cardinality import guessing_once
from bamquery.plan.expressions import AggregateCall, ColumnRef, Expression
from bamquery.plan.nodes import Plan
from bamquery.plan.rewriting import children
from bamquery.plan.types import is_interval
from bamquery.unreadable import unreadable


def lower(plan: Plan, device: Device[Frame], settings: Settings) -> Operator[Frame]:
    """The operators that run a plan on a device. Nothing is read yet.

    Raises:
        UnsupportedError: the device cannot do all of it; every reason is given.
    """
    reasons = list(dict.fromkeys(refusals(plan, device)))
    if reasons:
        raise UnsupportedError([Reason(reason) for reason in reasons])
    with guessing_once():
        return _lower(plan, settings, SharedPlans(plan))


def refusals(plan: Plan, device: Device[Any]) -> Iterator[str]:
    """Why the device cannot run the plan."""
    for field in plan.fields:
        reason = unreadable(field.type)
        if reason is not None:
            yield reason
            continue
        for reason in device.type_refusals(field.type):
            yield f"{reason} (column {field.name})"
    if isinstance(plan, nodes.Window):
        for call in plan.calls:
            yield from device.window_refusals(call)
    for part in _computed(plan):
        if isinstance(part, AggregateCall):
            yield from device.aggregate_refusals(part)
        else:
            yield from device.expression_refusals(part)
    if isinstance(plan, nodes.Aggregate) and any(is_interval(key.type) for key in plan.keys):
        yield f"the {device.name} device cannot group by INTERVAL: take epoch() of it"
    for child in children(plan):
        yield from refusals(child, device)


def _computed(plan: Plan) -> tuple[Expression | AggregateCall, ...]:
    match plan:
        case nodes.Scan(predicates=predicates):
            return predicates
        case nodes.Filter(predicate=predicate):
            return (predicate,)
        case nodes.Project(expressions=expressions):
            return expressions
        case nodes.Aggregate(keys=keys, aggregates=aggregates):
            return (*keys, *aggregates)
        case nodes.Window(partition=partition, order=order):
            return (*partition, *(key.expression for key in order))
        case nodes.Sort(keys=keys):
            return tuple(key.expression for key in keys)
        case nodes.Join(condition=condition) if condition is not None:
            return (condition,)
        case nodes.Repeat(count=repeats):
            return (repeats,)
        case _:
            return ()


def _lower(plan: Plan, settings: Settings, shared: SharedPlans | None) -> Operator[Any]:
    def below(child: Plan) -> Operator[Any]:
        return _lower(child, settings, shared)

    if shared is None:
        return _operator(plan, settings, below)
    return shared.lowered(plan, lambda one: _operator(one, settings, below))


def _operator(plan: Plan, settings: Settings, lower: Callable[[Plan], Operator[Any]]) -> Operator[Any]:
    match plan:
        case nodes.Scan():
            return make_scan(plan, settings)
        case nodes.SingleRow():
            return SingleRow()
        case nodes.Values(batch=batch):
            return Values(batch, plan.fields)
        case nodes.Filter(child=child, predicate=predicate):
            return Filter(lower(child), predicate)
        case nodes.Project(child=child, expressions=expressions):
            return Project(lower(child), expressions, plan.fields)
        case nodes.Aggregate(child=child, keys=keys, aggregates=aggregates):
            calls = without_ordered_extremes(without_needless_distinct(aggregates))
            kind = DistinctAggregate if any(call.distinct for call in calls) else Aggregate
            rows = _in_order_for_groups(plan, child, lower) if isinstance(child, nodes.Sort) else lower(child)
            if plan.sets:
                return _lower_sets(plan, rows, calls, kind)
            rows.encode_texts()
            return kind(rows, keys, calls, plan.fields)
        case nodes.Sort(child=child, keys=order, limit=None, offset=0):
            return Sort(lower(child), order)
        case nodes.Sort(child=child, keys=order, limit=None, offset=offset):
            return Limit(Sort(lower(child), order), None, offset)
        case nodes.Sort(child=child, keys=order, limit=int(count), offset=offset):
            top: TopRows[Any] = TopRows(lower(child), order, count, offset)
            if settings.dynamic_filters:
                top.filter_child()
            return top
        case nodes.Limit(child=child, count=count, offset=offset):
            return Limit(lower(child), count, offset)
        case nodes.Join():
            return lower_join(plan, lower, dynamic_filters=settings.dynamic_filters)
        case nodes.Recursion():
            return lower_recursion(plan, lambda part: _lower(part, settings, None))
        case nodes.Union(inputs=inputs):
            return Union([lower(child) for child in inputs], plan.fields)
        case nodes.Repeat(child=child, count=repeats):
            return Repeat(lower(child), repeats)
        case nodes.Window(child=child, partition=partition, order=order):
            rows = lower(child)
            sorting = (*(nodes.SortKey(key) for key in partition), *order)
            return Window(Sort(rows, sorting) if sorting else rows, plan)
        case nodes.Sample(child=child):
            return Sample(lower(child), plan)
        case _:
            raise AssertionError(f"no operator for {type(plan).__name__}")


def _in_order_for_groups(
    plan: nodes.Aggregate, child: nodes.Sort, lower: Callable[[Plan], Operator[Any]]
) -> Operator[Any]:
    """Sorted rows to be grouped; where only first ones are wanted (DISTINCT ON), few of them are sorted."""
    plain = all(
        call.function == "first" and not (call.order or call.distinct or call.filter is not None)
        for call in plan.aggregates
    )
    if plan.sets or not plan.keys or not plain or child.limit is not None or child.offset:
        return lower(child)
    order = [key for key in child.keys if key.expression not in plan.keys]  # others are alike in a group
    rows = lower(child.child)
    return Sort(FirstRows(rows, plan.keys, order), child.keys) if order else rows


def _lower_sets(
    plan: nodes.Aggregate,
    rows: Operator[Any],
    calls: Sequence[AggregateCall],
    kind: type[Aggregate[Any] | DistinctAggregate[Any]],
) -> Operator[Any]:
    """One grouping by the keys of all sets and the number of the set."""
    fields = plan.fields
    key_fields = fields[: len(plan.keys)]
    own_fields = (*key_fields, SET_NUMBER, *fields[len(plan.keys) : -1])
    if can_roll_up(calls, len(plan.keys), plan.sets):
        rolled = RollUp(rows, plan.keys, calls, plan.sets, own_fields)
        return CollectSets(rolled, rows.fields, calls, plan.sets, fields)
    expanded = ExpandSets(rows, plan.keys, key_fields, plan.sets)
    keys = [
        ColumnRef(i, field.name, field.type)
        for i, field in enumerate(expanded.fields)
        if i >= len(rows.fields)
    ]
    return CollectSets(kind(expanded, keys, calls, own_fields), rows.fields, calls, plan.sets, fields)
