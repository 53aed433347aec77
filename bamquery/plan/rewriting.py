"""Walking and rebuilding plans: what every rule is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Expression, SortKey, transform
from bamquery.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Plan,
    Project,
    Recursion,
    Repeat,
    Scan,
    SingleRow,
    Sort,
    Union,
    Values,
    Window,
)
from bamquery.plan.windows import map_call

Rewrite = Callable[[Expression], Expression]


def children(plan: Plan) -> tuple[Plan, ...]:
    """The plans that the node takes its rows from."""
    match plan:
        case Scan() | SingleRow() | Values():
            return ()
        case Join(left=left, right=right):
            return (left, right)
        case Union(inputs=inputs):
            return inputs
        case Recursion(first=first, step=step):
            return (first, step)
        case _:
            return (plan.child,)


def with_children(plan: Plan, below: Sequence[Plan]) -> Plan:
    """The node over other plans, as many as it has; the same node where they are the same ones."""
    if all(new is old for new, old in zip(below, children(plan), strict=True)):
        return plan
    match plan:
        case Scan() | SingleRow() | Values():
            return plan
        case Join():
            left, right = below
            return replace(plan, left=left, right=right)
        case Union():
            return Union(tuple(below))
        case Recursion():
            first, step = below
            return replace(plan, first=first, step=step)
        case _:
            (child,) = below
            return replace(plan, child=child)


def transform_plan(plan: Plan, rewrite: Callable[[Plan], Plan]) -> Plan:
    """Rebuild bottom-up, each node passed through `rewrite` after its children."""
    return rewrite(with_children(plan, [transform_plan(child, rewrite) for child in children(plan)]))


def map_expressions(plan: Plan, rewrite: Rewrite) -> Plan:
    """The node with `rewrite` applied to each of its own expressions as a whole; the child is kept."""
    match plan:
        case Scan(predicates=predicates):
            return replace(plan, predicates=tuple(map(rewrite, predicates)))
        case Filter(predicate=predicate):
            return replace(plan, predicate=rewrite(predicate))
        case Project(expressions=expressions):
            return replace(plan, expressions=tuple(map(rewrite, expressions)))
        case Aggregate(keys=keys, aggregates=aggregates):
            calls = tuple(map_arguments(call, rewrite) for call in aggregates)
            return replace(plan, keys=tuple(map(rewrite, keys)), aggregates=calls)
        case Sort(keys=keys):
            return replace(plan, keys=tuple(map_key(key, rewrite) for key in keys))
        case Join(condition=condition) if condition is not None:
            return replace(plan, condition=rewrite(condition))
        case Repeat(count=count):
            return replace(plan, count=rewrite(count))
        case Window(partition=partition, order=order, calls=calls):
            return replace(
                plan,
                partition=tuple(map(rewrite, partition)),
                order=tuple(map_key(key, rewrite) for key in order),
                calls=tuple(map_call(call, rewrite) for call in calls),
            )
        case _:
            return plan


def map_arguments(call: AggregateCall, rewrite: Rewrite) -> AggregateCall:
    """The call with `rewrite` applied to its arguments, order and filter."""
    condition = None if call.filter is None else rewrite(call.filter)
    order = tuple(map_key(key, rewrite) for key in call.order)
    return replace(call, arguments=tuple(map(rewrite, call.arguments)), filter=condition, order=order)


def map_key(key: SortKey, rewrite: Rewrite) -> SortKey:
    """The term with `rewrite` applied to what it orders by."""
    return replace(key, expression=rewrite(key.expression))


def rewrite_everywhere(plan: Plan, rewrite: Rewrite) -> Plan:
    """The plan with `rewrite` applied to every subexpression of every node, innermost first."""
    return transform_plan(plan, lambda node: map_expressions(node, lambda e: transform(e, rewrite)))


def substitute(expression: Expression, columns: Sequence[Expression]) -> Expression:
    """The expression with column number `i` replaced by `columns[i]`."""
    return transform(expression, lambda e: columns[e.index] if isinstance(e, ColumnRef) else e)


def renumber(expression: Expression, positions: Mapping[int, int]) -> Expression:
    """The expression with column number `i` read from `positions[i]` instead."""
    return transform(
        expression, lambda e: replace(e, index=positions[e.index]) if isinstance(e, ColumnRef) else e
    )


def expressions_of(plan: Plan) -> list[Expression]:
    """The node's own expressions, those of aggregate calls among them."""
    found: list[Expression] = []

    def note(expression: Expression) -> Expression:
        found.append(expression)
        return expression

    map_expressions(plan, note)
    return found


def columns_of(plan: Plan) -> tuple[ColumnRef, ...]:
    """A reference to each of the node's output columns."""
    return tuple(ColumnRef(i, field.name, field.type) for i, field in enumerate(plan.fields))


def conjuncts(predicate: Expression) -> list[Expression]:
    """The conditions that all must be true for the predicate to be."""
    if isinstance(predicate, Call) and predicate.function == "and":
        return [part for argument in predicate.arguments for part in conjuncts(argument)]
    return [predicate]


def conjunction(parts: Sequence[Expression]) -> Expression:
    """One predicate that is true where all of one or more are."""
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), pa.bool_())
