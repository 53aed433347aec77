"""The order of inner joins: the largest source first, then what keeps the rows fewest."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from bamquery.plan.assumptions import ask_of_plans
from bamquery.plan.cardinality import (
    Domain,
    compared_values,
    domain_of,
    estimated_rows,
    is_equality,
    paired_rows,
    remember_estimates,
)
from bamquery.plan.expressions import Cast, ColumnRef, Expression, referenced_columns
from bamquery.plan.nodes import Join, Plan, Project
from bamquery.plan.rewriting import (
    children,
    columns_of,
    conjunction,
    conjuncts,
    is_too_large_to_copy,
    renumber,
    shared_nodes,
    with_children,
)
from bamquery.statement_context.cancellation import check_cancelled

_MOST_COMPARED: Final = 12
"""Of so many sources each step looks at all that are left. Of more it takes the next by what is known of each
from when its conditions could be told, so that what it costs grows with sources and conditions only."""


def order_joins(plan: Plan) -> Plan:
    """Join three or more sources in the order that is likely to be cheapest.

    The largest one streams past the others, which are held in memory. Next comes what is compared with
    those that are there already and leaves the fewest rows; all pairs of rows come last.
    """
    with remember_estimates():
        return _Ordering(plan)(plan)


class _Ordering:
    """What became of each node; joins that are part of a larger one are looked at with it."""

    def __init__(self, plan: Plan) -> None:
        self._made: dict[int, tuple[Plan, Plan]] = {}
        self._input_counts: dict[int, int] = {}
        self._shared = shared_nodes(plan)

    def __call__(self, plan: Plan) -> Plan:
        found = self._made.get(id(plan))
        if found is None:
            check_cancelled()
            found = self._made[id(plan)] = (plan, self._reorder(plan))
        return found[1]

    def _reorder(self, plan: Plan) -> Plan:
        if not _is_inner(plan):
            return with_children(plan, [self(child) for child in children(plan)])
        leaves, conditions = self._flatten_joins(plan)
        inputs = [self(leaf) for leaf in leaves]
        order = (
            ask_of_plans(_order, inputs, conditions) if len(inputs) > 2 else []
        )  # which of two is the build side is decided later
        if order == list(range(len(order))):
            return self._same_tree(plan, iter(inputs))
        return _build_joins(inputs, order, conditions)

    def _is_reordered_with_parent(self, side: Plan) -> bool:
        """Whether a side's sources are ordered with those beside it.

        Not those of a large join that several nodes read: each reader would have all of them once more, and
        what is computed once for all would be computed for each.
        """
        return _is_inner(side) and (id(side) not in self._shared or self._is_small(side))

    def _is_small(self, side: Plan) -> bool:
        return not is_too_large_to_copy(side) and self._width(side) <= _MOST_COMPARED

    def _width(self, plan: Plan) -> int:
        """How many sources a join has."""
        if id(plan) not in self._input_counts:
            below = (
                self._width(side) if self._is_reordered_with_parent(side) else 1 for side in children(plan)
            )
            self._input_counts[id(plan)] = sum(below)
        return self._input_counts[id(plan)]

    def _flatten_joins(self, plan: Plan) -> tuple[list[Plan], list[Expression]]:
        """What a tree of inner joins joins, and all its conditions over the columns of all of it."""
        inputs: list[Plan] = []
        conditions: list[Expression] = []

        self._collect(plan, 0, inputs, conditions)
        return inputs, conditions

    def _collect(self, join: Plan, start: int, inputs: list[Plan], conditions: list[Expression]) -> None:
        assert isinstance(join, Join)
        for side in (join.left, join.right):
            if self._is_reordered_with_parent(side):
                self._collect(side, start, inputs, conditions)
            else:
                inputs.append(side)
            start += len(side.fields)
        if join.condition is not None:
            first = start - len(join.fields)
            conditions.extend(_shift_columns(conjunct, first) for conjunct in conjuncts(join.condition))

    def _same_tree(self, plan: Plan, inputs: Iterator[Plan]) -> Plan:
        """The tree of joins over other inputs."""
        sides = [
            self._same_tree(side, inputs) if self._is_reordered_with_parent(side) else next(inputs)
            for side in children(plan)
        ]
        return with_children(plan, sides)


def _is_inner(plan: Plan) -> bool:
    return isinstance(plan, Join) and plan.kind == "inner"


def _shift_columns(expression: Expression, by: int) -> Expression:
    if not by:
        return expression
    return renumber(expression, {index: index + by for index in referenced_columns(expression)})


@dataclass(frozen=True)
class _Condition:
    """A condition of the joins, and the numbers of the sources that it is about."""

    expression: Expression
    sources: frozenset[int]
    is_equality: bool


class _Sources:
    """What is joined, with the places of its columns in the join as it was written."""

    def __init__(self, inputs: Sequence[Plan], conditions: Sequence[Expression]) -> None:
        self.inputs = inputs
        self.rows = [estimated_rows(source) for source in inputs]
        self.starts = [0, *accumulate(len(source.fields) for source in inputs)]
        self._of_column = [i for i, source in enumerate(inputs) for _ in source.fields]
        self.conditions = [_Condition(one, self._sources_read(one), is_equality(one)) for one in conditions]
        self._compared: dict[int, float | None] = {}
        self.about: list[list[_Condition]] = [[] for _ in inputs]
        """Of each source the conditions about it and others."""
        for condition in self.conditions:
            if len(condition.sources) > 1:
                for i in condition.sources:
                    self.about[i].append(condition)

    def _sources_read(self, expression: Expression) -> frozenset[int]:
        return frozenset(self._of_column[index] for index in referenced_columns(expression))

    def joined_rows(self, left: float, new: int, own: Sequence[_Condition]) -> float:
        """How many rows there are once a source has joined so many others."""
        return paired_rows(left, self.rows[new], [self._compared_values(condition) for condition in own])

    def _compared_values(self, condition: _Condition) -> float | None:
        if id(condition) not in self._compared:  # it is kept
            self._compared[id(condition)] = compared_values(condition.expression, self._domain)
        return self._compared[id(condition)]

    def _domain(self, side: Expression) -> Domain | None:
        while isinstance(side, Cast):
            side = side.argument
        if not isinstance(side, ColumnRef):
            return None
        i = self._of_column[side.index]
        return domain_of(self.inputs[i], ColumnRef(side.index - self.starts[i], side.name, side.type))

    def conditions_at(self, there: set[int], new: int) -> list[_Condition]:
        """The conditions that can be told once a source joins those that are there, and could not before."""
        return [one for one in self.about[new] if one.sources <= there | {new}]


def _order(inputs: Sequence[Plan], conditions: Sequence[Expression]) -> list[int]:
    """Numbers of the sources in the order that they are to be joined in."""
    sources = _Sources(inputs, conditions)
    numbers = range(len(inputs))
    first = max(numbers, key=lambda i: (sources.rows[i], -i))
    if len(inputs) > _MOST_COMPARED:
        return _order_of_many(sources, first)
    waiting = [i for i in numbers if i != first]
    order, rows = [first], sources.rows[first]
    while waiting:
        there = set(order)

        def rank(i: int) -> tuple[bool, bool, float, float]:
            own = sources.conditions_at(there, i)  # noqa: B023
            after = sources.joined_rows(rows, i, own)  # noqa: B023
            return (not any(one.is_equality for one in own), not own, after, sources.rows[i])

        best = min(waiting, key=rank)
        rows = sources.joined_rows(rows, best, sources.conditions_at(there, best))
        waiting.remove(best)
        order.append(best)
    return order


def _order_of_many(sources: _Sources, first: int) -> list[int]:
    """The same, but a source's rank is that of when the last of its conditions could be told."""
    there: set[int] = set()
    order: list[int] = []
    rows = sources.rows[first]
    waiting: list[tuple[bool, bool, float, float, int, int]] = []
    told = [0] * len(sources.inputs)

    def push(i: int) -> None:
        own = sources.conditions_at(there, i)
        told[i] = len(own)
        after = sources.joined_rows(rows, i, own) / max(rows, 1.0)
        rank = (not any(one.is_equality for one in own), not own, after, sources.rows[i], i, len(own))
        heapq.heappush(waiting, rank)

    def take(i: int) -> None:
        there.add(i)
        order.append(i)
        # A condition can be told of its last source once the others are there.
        last = {(set(one.sources) - there).pop() for one in sources.about[i] if len(one.sources - there) == 1}
        for other in sorted(last):
            push(other)

    take(first)
    for i in range(len(sources.inputs)):
        if i != first and not told[i]:
            push(i)
    while waiting:
        check_cancelled()
        *_, i, known = heapq.heappop(waiting)
        if i in there or known < told[i]:  # it is there, or has a rank of more conditions
            continue
        rows = sources.joined_rows(rows, i, sources.conditions_at(there, i))
        take(i)
    return order


def _build_joins(inputs: Sequence[Plan], order: Sequence[int], conditions: Sequence[Expression]) -> Plan:
    """The joins in that order, with the columns in the order in which they were written."""
    sources = _Sources(inputs, conditions)
    position = {source: place for place, source in enumerate(order)}
    by_last: list[list[Expression]] = [[] for _ in order]
    for one in sources.conditions:
        last = max((position[i] for i in one.sources), default=1)
        by_last[max(last, 1)].append(one.expression)
    plan = inputs[order[0]]
    places: dict[int, int] = {}
    for place, number in enumerate(order):
        start, end = sources.starts[number], sources.starts[number + 1]
        width = len(places)
        places |= {column: width + i for i, column in enumerate(range(start, end))}
        if place:
            now = by_last[place]
            condition = conjunction([renumber(condition, places) for condition in now]) if now else None
            plan = Join(plan, inputs[number], "inner", condition)
    columns = columns_of(plan)
    chosen = tuple(columns[places[column]] for column in range(len(columns)))
    return Project(plan, chosen, tuple(column.name for column in chosen))
