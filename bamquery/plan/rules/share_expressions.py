"""An expression that a node needs more than once is computed once, below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from bamquery.plan.assumptions import ask
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal, children, walk
from bamquery.plan.format import format_expression
from bamquery.plan.interning import DIFFERENT_EACH_TIME
from bamquery.plan.nodes import Aggregate, Plan, Project, Sort, Window
from bamquery.plan.rewriting import columns_of, expressions_of, map_expressions, transform_plan
from bamquery.statement_context.cancellation import check_cancelled

_FIRST_ONLY: Final = frozenset({"case", "coalesce", "and", "or", "if"})
"""Calls that need arguments after the first one for some rows only."""


def share_expressions(plan: Plan) -> Plan:
    """Put what is written several times in a node's expressions into a projection below it.

    At least one of the places must be computed for every row: an expression that CASE keeps from rows for
    which it would fail stays where it is.
    """
    return transform_plan(plan, _share)


def _share(plan: Plan) -> Plan:
    if not isinstance(plan, Project | Aggregate | Window | Sort):
        return plan
    shared = _find_repeated(expressions_of(plan), _unconditional_expressions(plan))
    if not shared:
        return plan
    child = plan.child
    columns = columns_of(child)
    names = (*(column.name for column in columns), *map(format_expression, shared))
    below = Project(child, (*columns, *shared), names)
    places = {
        expression: ColumnRef(len(columns) + i, format_expression(expression), expression.type)
        for i, expression in enumerate(shared)
    }
    moved = map_expressions(plan, lambda expression: _replace_shared(expression, places))
    assert isinstance(moved, Project | Aggregate | Window | Sort)
    shifted = replace(moved, child=below)
    if isinstance(plan, Sort | Window):  # which give their child's columns out, too
        return _drop_columns(shifted, len(columns), len(shared))
    return shifted


def _drop_columns(plan: Plan, start: int, count: int) -> Plan:
    """The plan without `count` of its columns from `start` on."""
    kept = [column for column in columns_of(plan) if not start <= column.index < start + count]
    return Project(plan, tuple(kept), tuple(column.name for column in kept))


def _find_repeated(expressions: Sequence[Expression], certain: Iterable[Expression]) -> list[Expression]:
    """Those that occur twice or more, the largest ones: what is part of one only counts with it."""
    uses: Counter[Expression] = Counter()
    for expression in expressions:
        _count_uses(expression, uses)
    found = [expression for expression, number in uses.items() if number > 1 and _is_worth(expression)]
    if not found:
        return []
    always = {node for expression in certain for node in _unconditional_nodes(expression)}
    return [expression for expression in found if expression in always]


def _count_uses(expression: Expression, uses: Counter[Expression]) -> None:
    if isinstance(expression, Call | Cast):
        check_cancelled()
        uses[expression] += 1
        if uses[expression] == 1:
            for child in children(expression):
                _count_uses(child, uses)


def _is_worth(expression: Expression) -> bool:
    """Whether it costs something and has the same value each time.

    The values of a dictionary are best looked up where they are wanted. Zeros of either sign are equal, and
    what is computed from them may differ.
    """
    if isinstance(expression, Cast) and pa.types.is_dictionary(expression.argument.type):
        return False
    for node in walk(expression):
        if isinstance(node, Call) and node.function in DIFFERENT_EACH_TIME:
            return False
        if isinstance(node, Literal) and pa.types.is_floating(node.type) and ask(_is_zero, node):
            return False
    return bool(any(isinstance(node, ColumnRef) for node in walk(expression)))


def _unconditional_expressions(plan: Plan) -> Iterator[Expression]:
    """Expressions that the node computes for every row."""
    match plan:
        case Project(expressions=expressions):
            yield from expressions
        case Aggregate(keys=keys, aggregates=aggregates):
            yield from keys
            for call in aggregates:
                if call.filter is None:
                    yield from call.inputs
                else:
                    yield call.filter
        case Sort(keys=order):
            yield from (key.expression for key in order)
        case Window(partition=partition, order=order):
            yield from partition
            yield from (key.expression for key in order)
        case _:
            pass


def _unconditional_nodes(expression: Expression) -> Iterator[Expression]:
    """The expression and those below it that are computed whenever it is."""
    yield expression
    below = children(expression)
    if isinstance(expression, Call) and expression.function in _FIRST_ONLY:
        below = below[:1]
    for child in below:
        yield from _unconditional_nodes(child)


def _replace_shared(expression: Expression, places: Mapping[Expression, ColumnRef]) -> Expression:
    found = places.get(expression)
    if found is not None:
        return found
    match expression:
        case Call(arguments=arguments):
            return replace(expression, arguments=tuple(_replace_shared(one, places) for one in arguments))
        case Cast(argument=argument):
            return replace(expression, argument=_replace_shared(argument, places))
        case _:
            return expression


def _is_zero(literal: Literal) -> bool:
    return bool(literal.value.as_py() == 0)
