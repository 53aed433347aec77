"""Queries that take columns from outside, made to give their answers for all outside values at once.

The scheme is that of Neumann and Kemper, "Unnesting Arbitrary Queries" (BTW 2015): the distinct outside
values, the domain, are joined to the query's sources and carried through its nodes. Where a condition says
that each of them equals a column within, that column takes the domain's place and the domain is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from bamquery.data_types.type_groups import value_type
from bamquery.plan.expressions import (
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    referenced_columns,
    transform,
)
from bamquery.plan.literals.scalars import scalar
from bamquery.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Limit,
    Plan,
    Project,
    Recursion,
    Repeat,
    Sort,
    Union,
    Window,
)
from bamquery.plan.rewriting import (
    children,
    columns_of,
    conjunction,
    conjuncts,
    expressions_of,
    fact_of_node,
    map_arguments,
)

_ZERO_OF_NOTHING: Final = frozenset({"count", "count_star", "approx_count_distinct", "regr_count", "entropy"})
"""Aggregates that are 0 of no rows; all others are null."""


class NotUnnestedError(Exception):
    """A query that takes columns from outside has a form that is not supported; says which."""


@fact_of_node
def is_correlated(plan: Plan) -> bool:
    """Whether the plan takes columns from outside."""
    return any(map(has_outer_columns, expressions_of(plan))) or any(map(is_correlated, children(plan)))


def replace_outer_columns(expression: Expression, values: Sequence[Expression]) -> Expression:
    """The expression with the k-th column from outside, which is numbered -1 - k, replaced by a value."""

    def replace_column(node: Expression) -> Expression:
        return values[-1 - node.index] if isinstance(node, ColumnRef) and node.index < 0 else node

    return transform(expression, replace_column)


def empty_value(call: AggregateCall, column: ColumnRef) -> Expression:
    """An aggregate's column, null where there was no group, with the value that it has for no rows."""
    if call.function not in _ZERO_OF_NOTHING:
        return column
    return Call("coalesce", (column, Literal(scalar(0, call.type))), call.type)


class DependentJoin:
    """Rewrites a plan that takes columns from outside, whose distinct values another plan gives."""

    def __init__(self, domain: Plan) -> None:
        self._domain = domain
        self._count = len(domain.fields)

    def push_down(self, plan: Plan) -> Plan:
        """The plan's rows for each row of the domain: the plan's columns, then the domain's.

        Raises:
            NotUnnestedError: the plan has no such form.
        """
        if not is_correlated(plan):
            return Join(plan, self._domain, "inner")
        match plan:
            case Filter(child=child, predicate=predicate):
                without_domain = self._filter_by_equalities(child, conjuncts(predicate))
                if without_domain is not None:
                    return without_domain
                below = self.push_down(child)
                return Filter(below, self._bind_domain(predicate, len(child.fields)))
            case Project(child=child):
                below, places = self.push_down(child), self._places(len(child.fields))
                own = tuple(replace_outer_columns(e, places) for e in plan.expressions)
                return Project(below, (*own, *places), (*plan.names, *_names(places)))
            case Aggregate():
                return self._aggregate(plan)
            case Sort(child=child, keys=keys, limit=None, offset=0):
                width = len(child.fields)
                own_keys = tuple(replace(k, expression=self._bind_domain(k.expression, width)) for k in keys)
                return Sort(self.push_down(child), own_keys)
            case Limit():
                return self._limit(plan)
            case Join():
                return self._join(plan)
            case Union(inputs=inputs):
                return Union(tuple(map(self.push_down, inputs)))
            case Repeat(child=child, count=count):
                return Repeat(self.push_down(child), self._bind_domain(count, len(child.fields)))
            case _:
                names = {Window: "a call over a window", Recursion: "WITH RECURSIVE"}
                what = names.get(type(plan), type(plan).__name__)
                words = f"a subquery with {what} over columns of the query around it"
                raise NotUnnestedError(words)

    def group_by_domain(self, plan: Aggregate) -> Plan:
        """An aggregate for each row of the domain that has input: the domain's columns, keys, aggregates."""
        if plan.sets:
            raise NotUnnestedError("a subquery with grouping sets over columns of the query around it")
        below, places = self.push_down(plan.child), self._places(len(plan.child.fields))
        keys = tuple(replace_outer_columns(key, places) for key in plan.keys)
        calls = tuple(
            map_arguments(call, lambda e: replace_outer_columns(e, places)) for call in plan.aggregates
        )
        return Aggregate(below, (*places, *keys), calls, (*_names(places), *plan.names))

    def _aggregate(self, plan: Aggregate) -> Plan:
        grouped = self.group_by_domain(plan)
        columns = columns_of(grouped)
        if plan.keys:
            return _keep_columns(grouped, [*columns[self._count :], *columns[: self._count]])
        # Without keys there is a row for each row of the domain, also where no row came in.
        domain = columns_of(self._domain)
        moved = [replace(column, index=column.index + self._count) for column in columns]
        joined = Join(self._domain, grouped, "left", conjunction(_equal(domain, moved[: self._count])))
        values = [
            empty_value(call, column)
            for call, column in zip(plan.aggregates, moved[self._count :], strict=True)
        ]
        return Project(joined, (*values, *domain), (*plan.names, *_names(domain)))

    def _limit(self, plan: Limit) -> Plan:
        """The first row for each row of the domain."""
        if plan.count == 0:
            return Limit(self.push_down(plan.child), 0)
        if plan.count != 1 or plan.offset:
            raise NotUnnestedError(
                "a subquery with LIMIT, other than LIMIT 1, over columns of the query around it"
            )
        below = self.push_down(plan.child)
        columns = columns_of(below)
        own, places = columns[: -self._count], columns[-self._count :]
        calls = tuple(_first_value(column) for column in own)
        names = (*_names(places), *_names(own))
        found = columns_of(Aggregate(below, places, calls, names))
        values = [
            Cast(value, column.type) if value.type != column.type else value
            for value, column in zip(found[self._count :], own, strict=True)
        ]
        grouped = Aggregate(below, places, calls, names)
        return Project(grouped, (*values, *found[: self._count]), (*_names(own), *_names(places)))

    def _join(self, plan: Join) -> Plan:
        of_left, of_right = is_correlated(plan.left), is_correlated(plan.right)
        width, right_width = len(plan.left.fields), len(plan.right.fields)
        if plan.kind == "inner" and not of_left and of_right:
            condition = self._condition(plan, 0, width + right_width)
            return Join(plan.left, self.push_down(plan.right), plan.kind, condition)
        if plan.kind == "right" and not of_left:
            return Join(
                plan.left,
                self.push_down(plan.right),
                plan.kind,
                self._condition(plan, 0, width + right_width),
            )
        left = self.push_down(plan.left)
        condition = self._condition(plan, self._count, width)
        if not of_right and plan.kind not in ("right", "full"):
            return self._rearrange_columns(Join(left, plan.right, plan.kind, condition), width)
        right = self.push_down(plan.right)
        here = columns_of(left)[width:]
        there = [
            replace(column, index=column.index + len(left.fields))
            for column in columns_of(right)[right_width:]
        ]
        given = [] if condition is None else conjuncts(condition)
        joined = Join(left, right, plan.kind, conjunction([*given, *_equal(here, there)]))
        return self._rearrange_columns(joined, width, right_width)

    def _rearrange_columns(self, joined: Join, width: int, right_width: int | None = None) -> Plan:
        """The join's columns as left, right or mark, domain; `right_width`: both sides have the domain."""
        if joined.kind in ("semi", "anti"):
            return joined
        columns = columns_of(joined)
        domain: Sequence[Expression] = columns[width : width + self._count]
        after = columns[width + self._count :]
        if right_width is not None and joined.kind != "mark":
            theirs, after = after[right_width:], after[:right_width]
            if joined.kind == "right":
                domain = theirs
            elif joined.kind == "full":
                domain = [
                    Call("coalesce", (mine, other), mine.type)
                    for mine, other in zip(columns[width : width + self._count], theirs, strict=True)
                ]
        names = [*_names(columns[:width]), *_names(after), *(f"outer{i}" for i in range(self._count))]
        return Project(joined, (*columns[:width], *after, *domain), tuple(names))

    def _condition(self, plan: Join, shift: int, place: int) -> Expression | None:
        """The join's condition with the right side's columns moved, and the domain's at a place."""
        if plan.condition is None:
            return None
        width = len(plan.left.fields)
        places = self._places(place)

        def move_column(node: Expression) -> Expression:
            if not isinstance(node, ColumnRef):
                return node
            if node.index < 0:
                return places[-1 - node.index]
            return replace(node, index=node.index + shift) if node.index >= width else node

        return transform(plan.condition, move_column)

    def _filter_by_equalities(self, child: Plan, given: Sequence[Expression]) -> Plan | None:
        """A filter that says which column within equals each one from outside: those stand for the domain.

        Rows come out for values that the domain may not have; they find no partner outside.
        """
        if is_correlated(child):
            return None
        stand_ins: dict[int, Expression] = {}
        kept: list[Expression] = []
        for conjunct in given:
            found = outer_equality(conjunct)
            if found is None or found[0] in stand_ins or found[1].type != self._domain.fields[found[0]].type:
                kept.append(conjunct)
                continue
            number, value, nulls_equal = found
            stand_ins[number] = value
            if not nulls_equal:
                kept.append(Call("is_not_null", (value,), pa.bool_()))
        if len(stand_ins) < self._count:
            return None
        values = [stand_ins[number] for number in range(self._count)]
        conditions = [replace_outer_columns(conjunct, values) for conjunct in kept]
        rows = Filter(child, conjunction(conditions)) if conditions else child
        columns = columns_of(child)
        names = (*_names(columns), *(f"outer{i}" for i in range(self._count)))
        return Project(rows, (*columns, *values), names)

    def _bind_domain(self, expression: Expression, width: int) -> Expression:
        return replace_outer_columns(expression, self._places(width))

    def _places(self, width: int) -> tuple[ColumnRef, ...]:
        """The domain's columns after `width` others."""
        return tuple(replace(c, index=width + c.index) for c in columns_of(self._domain))


def has_outer_columns(expression: Expression) -> bool:
    """Whether the expression takes columns from outside."""
    return any(index < 0 for index in referenced_columns(expression))


def outer_equality(conjunct: Expression) -> tuple[int, Expression, bool] | None:
    """Number of a column from outside, what it must equal within, and whether nulls are equal; or None."""
    if not isinstance(conjunct, Call) or conjunct.function not in ("equal", "is_not_distinct_from"):
        return None
    for one, other in (conjunct.arguments, conjunct.arguments[::-1]):
        if isinstance(one, ColumnRef) and one.index < 0:
            read = referenced_columns(other)
            if read and all(index >= 0 for index in read):
                return -1 - one.index, other, conjunct.function == "is_not_distinct_from"
    return None


def _equal(left: Sequence[ColumnRef], right: Sequence[ColumnRef]) -> list[Expression]:
    return [
        Call("is_not_distinct_from", (one, other), pa.bool_()) for one, other in zip(left, right, strict=True)
    ]


def _first_value(column: ColumnRef) -> AggregateCall:
    kind = value_type(column.type)
    argument: Expression = column if kind == column.type else Cast(column, kind)
    return AggregateCall("first", (argument,), kind)


def _keep_columns(plan: Plan, columns: Sequence[ColumnRef]) -> Plan:
    return Project(plan, tuple(columns), _names(columns))


def _names(columns: Sequence[ColumnRef]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)
