"""Walking and rebuilding plans: what every rule is made of.

A plan is a graph, in which a query that is named twice is one node: each is looked at, and rebuilt, once.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import pyarrow as pa

from bamquery.plan.expressions import (
    AggregateCall,
    Call,
    ColumnRef,
    Expression,
    SortKey,
    transform,
    transform_calls,
)
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
from bamquery.statement_context.cancellation import check_cancelled

Rewrite = Callable[[Expression], Expression]

Answer = TypeVar("Answer")

_MOST_COPIED: Final = 64
"""Operators."""


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


def fact_of_node(function: Callable[[Plan], Answer]) -> Callable[[Plan], Answer]:
    """A function of plans whose answer a node keeps: it is to be the same whoever asks, and whenever."""
    key = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def look_up(plan: Plan) -> Answer:
        known = plan.__dict__
        if key not in known:
            known[key] = function(plan)
        answer: Answer = known[key]
        return answer

    return look_up


def nodes_of(plan: Plan) -> Iterator[Plan]:
    """The node and all below it, each once, a node before what it first leads to."""
    seen: set[int] = set()
    waiting = [plan]
    while waiting:
        found = waiting.pop()
        if id(found) not in seen:
            check_cancelled()
            seen.add(id(found))
            yield found
            waiting.extend(reversed(children(found)))


def parents_first(plan: Plan, below: Callable[[Plan], Sequence[Plan]] = children) -> list[Plan]:
    """The node and all below it, each once, and before all that it takes rows from."""
    order: list[Plan] = []
    _add_children_first(plan, below, set(), order)
    return order[::-1]


def _add_children_first(
    plan: Plan, below: Callable[[Plan], Sequence[Plan]], seen: set[int], order: list[Plan]
) -> None:
    # No function within a function: one that calls itself would keep the tables until a collection.
    if id(plan) not in seen:
        seen.add(id(plan))
        for child in below(plan):
            _add_children_first(child, below, seen, order)
        order.append(plan)


def shared_nodes(plan: Plan) -> set[int]:
    """The numbers of the nodes that several others take rows from."""
    readers = Counter(id(child) for node in nodes_of(plan) for child in children(node))
    return {number for number, count in readers.items() if count > 1}


def computed_once(plan: Plan) -> set[int]:
    """The numbers of the nodes that several others take rows from, and that are too large to be copied.

    They stay one node: no rule gives one reader a node of its own, for fewer rows or columns.
    """
    shared = shared_nodes(plan)
    return {id(node) for node in nodes_of(plan) if id(node) in shared and is_too_large_to_copy(node)}


def is_too_large_to_copy(plan: Plan) -> bool:
    """Whether it is computed once for all its readers, whatever it is.

    Queries that name others twice, which name others twice, would be any number of operators.
    """
    return _operators(plan) > _MOST_COPIED


@fact_of_node
def _operators(plan: Plan) -> int:
    """How many operators it would be if nothing was shared."""
    return 1 + sum(map(_operators, children(plan)))


def with_fields(plan: Plan, **own: Any) -> Plan:
    """The node with other values for some of its fields; the same node where they are the same."""
    if all(_is_same(getattr(plan, name), value) for name, value in own.items()):
        return plan
    return replace(plan, **own)


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    # Numbers of columns and names are compared by value: what is large is rebuilt only where it changes.
    return one is other or (isinstance(one, int | str) and type(one) is type(other) and bool(one == other))


class PlanRewriter:
    """What became of the nodes of a plan: a node that several others lead to is rebuilt once."""

    def __init__(self, rewrite: Callable[[Plan], Plan] | None = None) -> None:
        """`rewrite` makes of each node what becomes of it, where a subclass does not."""
        self._function = rewrite
        self._made: dict[int, tuple[Plan, Plan]] = {}  # with the node itself, whose number stays taken

    def __call__(self, plan: Plan) -> Plan:
        """Rebuilt bottom-up."""
        found = self._made.get(id(plan))
        if found is None:
            check_cancelled()
            below = [self(child) for child in children(plan)]
            found = self._made[id(plan)] = (plan, self.rewrite(with_children(plan, below)))
        return found[1]

    def rewrite(self, plan: Plan) -> Plan:
        """What becomes of a node whose children are rebuilt.

        A subclass has this and passes no function: one of its own would lead back to it, and the versions of
        tables that plans hold would be there until a garbage collection.
        """
        assert self._function is not None
        return self._function(plan)

    def forget(self) -> None:
        """Let go of all nodes."""
        self._made.clear()


def transform_plan(plan: Plan, rewrite: Callable[[Plan], Plan]) -> Plan:
    """Rebuild bottom-up, each node passed through `rewrite` after its children, once."""
    return PlanRewriter(rewrite)(plan)


def map_expressions(plan: Plan, rewrite: Rewrite) -> Plan:
    """The node with `rewrite` applied to each of its own expressions as a whole; the child is kept."""
    match plan:
        case Scan(predicates=predicates):
            return with_fields(plan, predicates=tuple(map(rewrite, predicates)))
        case Filter(predicate=predicate):
            return with_fields(plan, predicate=rewrite(predicate))
        case Project(expressions=expressions):
            return with_fields(plan, expressions=tuple(map(rewrite, expressions)))
        case Aggregate(keys=keys, aggregates=aggregates):
            calls = tuple(map_arguments(call, rewrite) for call in aggregates)
            return with_fields(plan, keys=tuple(map(rewrite, keys)), aggregates=calls)
        case Sort(keys=keys):
            return with_fields(plan, keys=tuple(map_key(key, rewrite) for key in keys))
        case Join(condition=condition) if condition is not None:
            return with_fields(plan, condition=rewrite(condition))
        case Repeat(count=count):
            return with_fields(plan, count=rewrite(count))
        case Window(partition=partition, order=order, calls=calls):
            return with_fields(
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
    arguments = tuple(map(rewrite, call.arguments))
    if condition is call.filter and _is_same(order, call.order) and _is_same(arguments, call.arguments):
        return call
    return replace(call, arguments=arguments, filter=condition, order=order)


def map_key(key: SortKey, rewrite: Rewrite) -> SortKey:
    """The term with `rewrite` applied to what it orders by."""
    expression = rewrite(key.expression)
    return key if expression is key.expression else replace(key, expression=expression)


def rewrite_everywhere(plan: Plan, rewrite: Rewrite) -> Plan:
    """The plan with `rewrite` applied to every call and cast of every node, innermost first.

    What it makes of one may depend on that alone: an expression keeps that it leaves it as it is.
    """
    key = f"{rewrite.__module__}.{rewrite.__qualname__}"
    return transform_plan(
        plan, lambda node: map_expressions(node, lambda e: transform_calls(e, rewrite, key))
    )


def substitute(expression: Expression, columns: Sequence[Expression]) -> Expression:
    """The expression with column number `i` replaced by `columns[i]`."""
    return transform(expression, lambda e: columns[e.index] if isinstance(e, ColumnRef) else e)


def renumber(expression: Expression, positions: Mapping[int, int]) -> Expression:
    """The expression with column number `i` read from `positions[i]` instead."""

    def move_column(node: Expression) -> Expression:
        if not isinstance(node, ColumnRef) or positions[node.index] == node.index:
            return node
        return ColumnRef(positions[node.index], node.name, node.type)

    return transform(expression, move_column)


def expressions_of(plan: Plan) -> list[Expression]:
    """The node's own expressions, those of aggregate calls among them."""
    found: list[Expression] = []

    def note(expression: Expression) -> Expression:
        found.append(expression)
        return expression

    map_expressions(plan, note)
    return found


@fact_of_node
def columns_of(plan: Plan) -> tuple[ColumnRef, ...]:
    """A reference to each of the node's output columns."""
    return tuple(ColumnRef(i, field.name, field.type) for i, field in enumerate(plan.fields))


def conjuncts(predicate: Expression) -> list[Expression]:
    """The conditions that all must be true for the predicate to be."""
    if isinstance(predicate, Call) and predicate.function == "and":
        return [conjunct for argument in predicate.arguments for conjunct in conjuncts(argument)]
    return [predicate]


def conjunction(operands: Sequence[Expression]) -> Expression:
    """One predicate that is true where all of one or more are."""
    return operands[0] if len(operands) == 1 else Call("and", tuple(operands), pa.bool_())
