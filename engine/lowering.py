"""Logical plan to physical operators: which one does what, and what a device refuses."""

# ruff: noqa: PLC0415 (an operator is imported when a plan first has it: most plans have few of them)

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from bamquery.data_types.type_groups import is_interval
from bamquery.data_types.unreadable import unreadable
from bamquery.engine.capabilities import INSTEAD, Capabilities
from bamquery.engine.common_subplans import CommonSubplans
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.project import Project
from bamquery.engine.operators.single_row import SingleRow
from bamquery.engine.sources.scan_sources import reads_row_number
from bamquery.errors import Reason, UnsupportedError
from bamquery.plan import nodes
from bamquery.plan.cardinality import remember_estimates
from bamquery.plan.expressions import AggregateCall, Expression
from bamquery.plan.interning import Interning, lasting_facts
from bamquery.plan.nodes import Plan
from bamquery.plan.rewriting import nodes_of
from bamquery.statement_context.cancellation import check_cancelled

if TYPE_CHECKING:
    from bamquery.engine.device import Device, Frame
    from bamquery.engine.settings import Settings


_ACCEPTED: Final = f"{__name__}.accepted"
_GIVES_ON: Final = (
    nodes.Filter,
    nodes.Sort,
    nodes.Limit,
    nodes.Join,
    nodes.Union,
    nodes.Repeat,
    nodes.Sample,
)
"""Nodes whose columns are those of the nodes below, and at most a boolean."""


def lower(plan: Plan, device: Device[Frame], settings: Settings) -> Operator[Frame]:
    """The operators that run a plan on a device. Nothing is read yet.

    Raises:
        UnsupportedError: the device cannot do all of it; every reason is given.
    """
    able, facts = device.capabilities, lasting_facts(plan)
    if facts is None:
        plan = Interning()(plan)
    accepted = f"{_ACCEPTED} {able.device}"
    if facts is None or accepted not in facts:
        reasons = list(dict.fromkeys(refusals(plan, able)))
        if reasons:
            raise UnsupportedError([Reason(reason) for reason in reasons])
        if facts is not None and able.on_host:  # where constants make no difference
            facts[accepted] = True
    with remember_estimates():
        return _lower(plan, settings, CommonSubplans(plan))


def refusals(plan: Plan, able: Capabilities) -> Iterator[str]:
    """Why a device that is able to do so much cannot run the plan."""
    for node in nodes_of(plan):
        yield from _refusals(node, able)


def _refusals(plan: Plan, able: Capabilities) -> Iterator[str]:
    """Why it cannot do what the node itself does."""
    for field in () if isinstance(plan, _GIVES_ON) else plan.fields:
        reason = unreadable(field.type)
        if reason is not None:
            yield reason
            continue
        for reason in able.type_refusals(field.type):
            yield f"{reason} (column {field.name})"
    if isinstance(plan, nodes.Scan) and reads_row_number(plan) and not able.numbers_rows:
        yield f"the {able.device} device has no rowid: its scans do not number rows; {INSTEAD}"
    if isinstance(plan, nodes.Window):
        for call in plan.calls:
            yield from able.window_refusals(call)
    for computed in _computed_expressions(plan):
        if isinstance(computed, AggregateCall):
            yield from able.aggregate_refusals(computed)
        else:
            yield from able.expression_refusals(computed)
    if isinstance(plan, nodes.Aggregate) and any(is_interval(key.type) for key in plan.keys):
        yield f"the {able.device} device cannot group by INTERVAL: take epoch() of it"


def _computed_expressions(plan: Plan) -> tuple[Expression | AggregateCall, ...]:
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


def _lower(plan: Plan, settings: Settings, shared: CommonSubplans) -> Operator[Any]:
    def lower_child(child: Plan) -> Operator[Any]:
        return _lower(child, settings, shared)

    check_cancelled()
    return shared.lower_once(plan, lambda one: _operator(one, settings, lower_child))


def _operator(plan: Plan, settings: Settings, lower: Callable[[Plan], Operator[Any]]) -> Operator[Any]:
    match plan:
        case nodes.Scan():
            from bamquery.engine.operators.scan.lowering import lower_scan

            return lower_scan(plan, settings)
        case nodes.SingleRow():
            return SingleRow()
        case nodes.Values(batch=batch):
            from bamquery.engine.operators.values import Values

            return Values(batch, plan.fields)
        case nodes.Filter(child=child, predicate=predicate):
            from bamquery.engine.operators.filter import Filter

            return Filter(lower(child), predicate)
        case nodes.Project(child=child, expressions=expressions):
            return Project(lower(child), expressions, plan.fields)
        case nodes.Aggregate():
            from bamquery.engine.operators.aggregate.lowering import lower_grouping

            return lower_grouping(plan, lower)
        case nodes.Sort():
            return _sort(plan, settings, lower)
        case nodes.Limit(child=child, count=count, offset=offset):
            from bamquery.engine.operators.limit import Limit

            return Limit(lower(child), count, offset)
        case nodes.Join():
            from bamquery.engine.operators.join.lowering import lower_join

            return lower_join(plan, lower, dynamic_filters=settings.dynamic_filters)
        case nodes.Recursion():
            from bamquery.engine.operators.recursion.lowering import lower_recursion

            def lower_again(step: Plan) -> Operator[Any]:
                with remember_estimates():
                    return _lower(step, settings, CommonSubplans(step, only_large=True))

            return lower_recursion(plan, lower_again)
        case nodes.Union(inputs=inputs):
            from bamquery.engine.operators.union import Union

            return Union([lower(child) for child in inputs], plan.fields)
        case nodes.Repeat(child=child, count=repeats):
            from bamquery.engine.operators.repeat import Repeat

            return Repeat(lower(child), repeats)
        case nodes.Window(child=child, partition=partition, order=order):
            from bamquery.engine.operators.sort.sort import Sort
            from bamquery.engine.operators.window.window import Window

            rows = lower(child)
            sorting = (*(nodes.SortKey(key) for key in partition), *order)
            return Window(Sort(rows, sorting) if sorting else rows, plan)
        case nodes.Sample(child=child):
            from bamquery.engine.operators.sample.sample import Sample

            return Sample(lower(child), plan)
        case _:
            raise AssertionError(f"no operator for {type(plan).__name__}")


def _sort(plan: nodes.Sort, settings: Settings, lower: Callable[[Plan], Operator[Any]]) -> Operator[Any]:
    if plan.limit is not None:
        from bamquery.engine.operators.sort.top_n import TopN

        top: TopN[Any] = TopN(lower(plan.child), plan.keys, plan.limit, plan.offset)
        if settings.dynamic_filters:
            top.filter_child()
        return top
    from bamquery.engine.operators.sort.sort import Sort

    rows: Sort[Any] = Sort(lower(plan.child), plan.keys)
    if not plan.offset:
        return rows
    from bamquery.engine.operators.limit import Limit

    return Limit(rows, None, plan.offset)
