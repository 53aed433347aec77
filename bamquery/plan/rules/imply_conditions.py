"""``(a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4)`` over a join says ``a.x IN (1, 3)`` of one side, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal, Members, referenced_columns
from bamquery.plan.nodes import Filter, Join, Plan
from bamquery.plan.rewriting import conjunction, conjuncts, transform_plan

_NEVER_FAILING: Final = frozenset(
    {
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "in"),
        *("is_null", "is_not_null", "like", "ilike", "starts_with", "contains"),
    }
)


def imply_conditions(plan: Plan) -> Plan:
    """Ask of each joined source what every branch of an OR asks of it, so that it gives fewer rows.

    Only above inner joins, whose condition the OR becomes later: so nothing is implied twice.
    """
    return transform_plan(plan, _add_implied)


def _add_implied(plan: Plan) -> Plan:
    match plan:
        case Filter(child=Join(kind="inner") as join, predicate=predicate):
            given = conjuncts(predicate)
            if not any(isinstance(conjunct, Call) and conjunct.function == "or" for conjunct in given):
                return plan
            sources = list(_sources(join, 0))
            implied = [
                found
                for conjunct in given
                for found in _implied_conditions(conjunct, sources)
                if found not in given
            ]
            return Filter(join, conjunction([*given, *implied])) if implied else plan
        case _:
            return plan


def _sources(plan: Plan, start: int) -> Iterator[range]:
    """The places of each source's columns in a tree of inner joins."""
    waiting = [plan]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Join) and found.kind == "inner":
            waiting += [found.right, found.left]
        else:
            end = start + len(found.fields)
            yield range(start, end)
            start = end


def _implied_conditions(conjunct: Expression, sources: Sequence[range]) -> Iterator[Expression]:
    if not isinstance(conjunct, Call) or conjunct.function != "or":
        return
    read = referenced_columns(conjunct)
    for source in sources:
        if all(column in source for column in read):
            return  # all of it goes there
        branches = [
            [test for test in conjuncts(branch) if _is_about(test, source)] for branch in conjunct.arguments
        ]
        if all(branches):
            yield Call("or", tuple(map(conjunction, branches)), pa.bool_())


def _is_about(test: Expression, source: range) -> bool:
    """Whether a condition compares a column of the source with literals, which fails for no value."""
    if not isinstance(test, Call) or test.function not in _NEVER_FAILING:
        return False
    value, *others = test.arguments
    if isinstance(value, Cast) and pa.types.is_dictionary(value.argument.type):
        value = value.argument
    if not isinstance(value, ColumnRef) or value.index not in source:
        return False
    return all(isinstance(other, Literal | Members) for other in others)
