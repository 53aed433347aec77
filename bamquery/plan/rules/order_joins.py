"""The order of inner joins: the largest source first, then what keeps the rows fewest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from bamquery.plan.cardinality import (
    Domain,
    domain_of,
    estimated_rows,
    guessing_once,
    is_equality,
    joined_rows,
)
from bamquery.plan.expressions import Expression, referenced_columns
from bamquery.plan.nodes import Join, Plan, Project
from bamquery.plan.rewriting import (
    children,
    columns_of,
    conjunction,
    conjuncts,
    renumber,
    with_children,
)


def order_joins(plan: Plan) -> Plan:
    """Join three or more sources in the order that is likely to be cheapest.

    The largest one streams past the others, which are held in memory. Next comes what is compared with
    those that are there already and leaves the fewest rows; all pairs of rows come last.
    """
    with guessing_once():
        return _ordered_plan(plan)


def _ordered_plan(plan: Plan) -> Plan:
    if isinstance(plan, Join) and plan.kind == "inner":
        parts, conditions = _flattened(plan)
        parts = [_ordered_plan(part) for part in parts]
        return _rebuilt(plan, parts, conditions)
    return with_children(plan, [_ordered_plan(child) for child in children(plan)])


@dataclass(frozen=True)
class _Source:
    """One of what is joined, with the places of its columns in the join as it was written."""

    plan: Plan
    columns: frozenset[int]
    rows: float


def _flattened(plan: Join) -> tuple[list[Plan], list[Expression]]:
    """What a tree of inner joins joins, and all its conditions over the columns of all of it."""
    parts: list[Plan] = []
    conditions: list[Expression] = []
    start = 0
    for side in (plan.left, plan.right):
        if isinstance(side, Join) and side.kind == "inner":
            below, own = _flattened(side)
        else:
            below, own = [side], []
        parts += below
        conditions += [_moved(condition, start) for condition in own]
        start += len(side.fields)
    return parts, conditions + ([] if plan.condition is None else conjuncts(plan.condition))


def _moved(expression: Expression, by: int) -> Expression:
    return renumber(expression, {index: index + by for index in referenced_columns(expression)})


def _rebuilt(plan: Join, parts: Sequence[Plan], conditions: Sequence[Expression]) -> Plan:
    if len(parts) == 2:  # which of two is held is decided later
        return _same_tree(plan, list(parts))
    widths = [len(part.fields) for part in parts]
    starts = [0, *accumulate(widths)]
    sources = [
        _Source(part, frozenset(range(start, start + width)), estimated_rows(part))
        for part, start, width in zip(parts, starts, widths, strict=False)
    ]
    order = _ordered(sources, conditions)
    if order == list(range(len(sources))):
        return _same_tree(plan, list(parts))
    joined = _joined([sources[i] for i in order], conditions)
    places = [place for i in order for place in sorted(sources[i].columns)]
    columns = columns_of(joined)
    chosen = tuple(columns[places.index(place)] for place in range(starts[-1]))
    return Project(joined, chosen, tuple(column.name for column in chosen))


def _same_tree(plan: Plan, parts: list[Plan]) -> Plan:
    """The tree of joins over other parts, which are taken off the list."""
    if isinstance(plan, Join) and plan.kind == "inner":
        left = _same_tree(plan.left, parts)
        return with_children(plan, [left, _same_tree(plan.right, parts)])
    return parts.pop(0)


def _ordered(sources: Sequence[_Source], conditions: Sequence[Expression]) -> list[int]:
    """Numbers of the sources in the order that they are to be joined in."""
    waiting = list(range(len(sources)))
    first = max(waiting, key=lambda i: (sources[i].rows, -i))
    waiting.remove(first)
    order, there, rows = [first], sources[first].columns, sources[first].rows

    def domains(side: Expression) -> Domain | None:
        read = referenced_columns(side)
        for source in sources:
            if read and read <= source.columns:
                start = min(source.columns)
                return domain_of(source.plan, renumber(side, {i: i - start for i in read}))
        return None

    while waiting:

        def rank(i: int) -> tuple[bool, bool, float, float]:
            own = _conditions_at(conditions, there, sources[i].columns)  # noqa: B023
            after = joined_rows(rows, sources[i].rows, own, domains)  # noqa: B023
            return (not any(map(is_equality, own)), not own, after, sources[i].rows)

        best = min(waiting, key=rank)
        own = _conditions_at(conditions, there, sources[best].columns)
        rows = joined_rows(rows, sources[best].rows, own, domains)
        waiting.remove(best)
        order.append(best)
        there |= sources[best].columns
    return order


def _conditions_at(
    conditions: Sequence[Expression], there: frozenset[int], new: frozenset[int]
) -> list[Expression]:
    """The conditions that can be told once a source joins those that are there, and could not before."""
    both = there | new
    found = []
    for condition in conditions:
        read = referenced_columns(condition)
        if read <= both and read & new and read & there:
            found.append(condition)
    return found


def _joined(sources: Sequence[_Source], conditions: Sequence[Expression]) -> Plan:
    plan = sources[0].plan
    places = {place: i for i, place in enumerate(sorted(sources[0].columns))}
    waiting = list(conditions)
    for source in sources[1:]:
        places |= {place: len(places) + i for i, place in enumerate(sorted(source.columns))}
        now = [condition for condition in waiting if referenced_columns(condition) <= places.keys()]
        waiting = [condition for condition in waiting if condition not in now]
        condition = conjunction([renumber(part, places) for part in now]) if now else None
        plan = Join(plan, source.plan, "inner", condition)
    return plan
