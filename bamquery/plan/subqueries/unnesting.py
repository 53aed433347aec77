"""Queries within expressions become joins.

A query that takes columns from outside is made to give its answer for all of their values at once: see
`dependent_joins`. The rows outside then find theirs by a join on those values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, referenced_columns, transform
from bamquery.plan.expressions import children as subexpressions
from bamquery.plan.nodes import Aggregate, Filter, Join, Limit, Plan, Project, SingleRow, Sort
from bamquery.plan.rewriting import (
    PlanRewriter,
    children,
    columns_of,
    conjunction,
    conjuncts,
    expressions_of,
    fact_of_node,
    map_expressions,
    substitute,
    with_children,
)
from bamquery.plan.subqueries.dependent_joins import (
    DependentJoin,
    NotUnnestedError,
    empty_value,
    replace_outer_columns,
)
from bamquery.plan.subqueries.existence import rows_and_condition, shift_columns
from bamquery.plan.subqueries.expressions import SubqueryCall, has_subquery


class UnnestingError(Exception):
    """A query in an expression cannot be turned into a join; `call` knows where it stands."""

    def __init__(self, words: str, call: SubqueryCall) -> None:
        super().__init__(words)
        self.call = call


def unnest_subqueries(plan: Plan) -> Plan:
    """The plan without queries in expressions; those of inner queries must have been unnested already.

    Raises:
        UnnestingError: a query stands, or is made, in a way that has no join.
    """
    return _Unnesting()(plan) if _has_subqueries(plan) else plan


class _Unnesting(PlanRewriter):
    def __init__(self) -> None:
        super().__init__(_unnest_node)

    def __call__(self, plan: Plan) -> Plan:
        # What was bound, and unnested, before is not looked through with each query around it.
        return super().__call__(plan) if _has_subqueries(plan) else plan


@fact_of_node
def _has_subqueries(plan: Plan) -> bool:
    own = any(map(has_subquery, expressions_of(plan)))
    return own or any(map(_has_subqueries, children(plan)))


def _unnest_node(plan: Plan) -> Plan:
    if not any(map(has_subquery, expressions_of(plan))):
        return plan
    match plan:
        case Filter(child=child, predicate=predicate) if not all(map(has_subquery, conjuncts(predicate))):
            # Other conditions first: queries are asked about the rows that are left, however they are asked.
            given = conjuncts(predicate)
            left = Filter(child, conjunction([conjunct for conjunct in given if not has_subquery(conjunct)]))
            return _unnest_node(
                Filter(left, conjunction([conjunct for conjunct in given if has_subquery(conjunct)]))
            )
        case Filter(child=child) | Project(child=child) | Aggregate(child=child):
            attached = _SubqueryJoiner(child)
            rewritten = map_expressions(plan, lambda e: transform(e, attached.value))
            whole = with_children(rewritten, [attached.plan])
            return _first_columns(whole, len(child.fields)) if isinstance(plan, Filter) else whole
        case Join(kind="inner", condition=condition) if condition is not None:
            given = conjuncts(condition)
            own = [conjunct for conjunct in given if not has_subquery(conjunct)]
            join = replace(plan, condition=conjunction(own) if own else None)
            return _unnest_node(
                Filter(join, conjunction([conjunct for conjunct in given if has_subquery(conjunct)]))
            )
        case Join(condition=condition) if condition is not None:
            return _attach_to_own_side(plan, condition)
        case _:
            call = next(e for e in map(_first_subquery, expressions_of(plan)) if e is not None)
            raise UnnestingError("a subquery in this clause", call)


def _attach_to_own_side(plan: Join, condition: Expression) -> Plan:
    """A join that keeps unmatched rows, the queries of its condition joined to the side they are about."""
    width = len(plan.left.fields)
    left, right = _SubqueryJoiner(plan.left), _SubqueryJoiner(plan.right)
    values: dict[SubqueryCall, tuple[bool, Expression]] = {}
    for call in _subqueries(condition):
        read = referenced_columns(*call.arguments)
        of_left = bool(read) and all(index < width for index in read)
        if (read and not of_left and min(read) < width) or any(map(has_subquery, call.arguments)):
            raise UnnestingError("a subquery about both sides in the condition of such a join", call)
        if of_left:
            values[call] = (True, left.value(call))
        else:
            values[call] = (False, right.value(shift_columns(call, -width)))
    wide = len(left.plan.fields)

    def place_column(node: Expression) -> Expression:
        match node:
            case SubqueryCall():
                of_left, value = values[node]
                return value if of_left else shift_columns(value, wide)
            case ColumnRef(index=index) if index >= width:
                return replace(node, index=index - width + wide)
            case Call(arguments=arguments):
                return replace(node, arguments=tuple(map(place_column, arguments)))
            case Cast(argument=argument):
                return replace(node, argument=place_column(argument))
            case _:
                return node

    joined = Join(left.plan, right.plan, plan.kind, place_column(condition))
    columns = columns_of(joined)
    own = [*columns[:width], *columns[wide : wide + len(plan.right.fields)]]
    if plan.kind in ("semi", "anti"):
        own = own[:width]
    return Project(joined, tuple(own), tuple(column.name for column in own))


def _subqueries(expression: Expression) -> list[SubqueryCall]:
    """The queries in an expression that are not within the arguments of others."""
    if isinstance(expression, SubqueryCall):
        return [expression]
    return [call for child in subexpressions(expression) for call in _subqueries(child)]


def _first_subquery(expression: Expression) -> SubqueryCall | None:
    found: list[SubqueryCall] = []

    def note(node: Expression) -> Expression:
        if isinstance(node, SubqueryCall):
            found.append(node)
        return node

    transform(expression, note)
    return found[0] if found else None


def _first_columns(plan: Plan, count: int) -> Plan:
    columns = columns_of(plan)[:count]
    if len(columns) == len(plan.fields):
        return plan
    return Project(plan, columns, tuple(column.name for column in columns))


class _SubqueryJoiner:
    """A plan that more and more queries are joined to; its own columns stay the first ones."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._base = plan
        self._values: dict[SubqueryCall, Expression] = {}

    def value(self, node: Expression) -> Expression:
        """For a query what stands for it over the plan's columns, anything else as it is."""
        if not isinstance(node, SubqueryCall):
            return node
        if node not in self._values:
            try:
                self._values[node] = self._attach(node)
            except NotUnnestedError as error:
                raise UnnestingError(str(error), node) from None
        return self._values[node]

    def _attach(self, call: SubqueryCall) -> Expression:
        outside, compared = call.arguments[: call.correlated], call.arguments[call.correlated :]
        if call.kind == "scalar":
            aggregate = _keyless_aggregate(call.plan)
            if outside and aggregate is not None:
                return self._attach_aggregate(call.plan, aggregate, outside)
            kind = "inner" if _is_one_row(call.plan) and not outside else "single"
            place = self._join(call.plan, kind, outside, None)
            return ColumnRef(place, call.plan.fields[0].name, call.type)
        if call.kind == "exists":
            found = rows_and_condition(_some_row(call.plan), outside, len(self.plan.fields))
            if found is not None:
                width = len(self.plan.fields)
                self.plan = Join(self.plan, found[0], "mark", found[1])
                return ColumnRef(width, "mark", pa.bool_())
            place = self._join(_some_row(call.plan), "mark", outside, None)
        else:
            place = self._join(
                call.plan, "mark", outside, _pair_condition(call, compared, len(self.plan.fields))
            )
        return ColumnRef(place, "mark", pa.bool_())

    def _join(self, inner: Plan, kind: str, outside: Sequence[Expression], test: Expression | None) -> int:
        """Join the query; the place of its first column, or of the mark."""
        width = len(self.plan.fields)
        conditions: list[Expression] = []
        if outside:
            answers = DependentJoin(self._domain(outside)).push_down(inner)
            conditions += _equate_outer_values(outside, columns_of(answers)[len(inner.fields) :], width)
            inner = answers
        if test is not None:
            conditions.append(test)
        condition = conjunction(conditions) if conditions else None
        self.plan = Join(self.plan, inner, kind, condition)  # type: ignore[arg-type]
        return width

    def _attach_aggregate(
        self, inner: Plan, aggregate: Aggregate, outside: Sequence[Expression]
    ) -> Expression:
        """Aggregates of all rows, and what is computed from them: grouped, and joined before it is computed.

        A row outside that has no group has the aggregates' values for no rows.
        """
        width, count = len(self.plan.fields), len(outside)
        grouped = DependentJoin(self._domain(outside)).group_by_domain(aggregate)
        keys = columns_of(grouped)[:count]
        conditions = _equate_outer_values(outside, keys, width)
        self.plan = Join(self.plan, grouped, "left", conjunction(conditions))
        values = [
            empty_value(call, ColumnRef(width + count + i, grouped.fields[count + i].name, call.type))
            for i, call in enumerate(aggregate.aggregates)
        ]
        return _value_over_aggregate(inner, values, outside)

    def _domain(self, outside: Sequence[Expression]) -> Plan:
        """The distinct values of what a query takes from outside."""
        own = all(index < len(self._base.fields) for index in referenced_columns(*outside))
        names = tuple(f"outer{i}" for i in range(len(outside)))
        return Aggregate(self._base if own else self.plan, tuple(outside), (), names)


def _equate_outer_values(
    outside: Sequence[Expression], columns: Sequence[ColumnRef], width: int
) -> list[Expression]:
    """That the values outside are those of columns of the right side."""
    return [
        Call(
            "is_not_distinct_from",
            (value, replace(column, index=width + column.index)),
            pa.bool_(),
        )
        for value, column in zip(outside, columns, strict=True)
    ]


def _pair_condition(call: SubqueryCall, compared: Sequence[Expression], width: int) -> Expression:
    """The test of a pair of a row outside, `width` columns wide, and one of the query."""
    columns = [replace(column, index=width + column.index) for column in columns_of(call.plan)]
    assert call.test is not None
    return substitute(call.test, [*columns, *compared])


def _keyless_aggregate(plan: Plan) -> Aggregate | None:
    """The aggregate of all rows that the plan computes its only row from, or None."""
    while isinstance(plan, Project):
        plan = plan.child
    return plan if isinstance(plan, Aggregate) and not plan.keys else None


def _is_one_row(plan: Plan) -> bool:
    while isinstance(plan, Project):
        plan = plan.child
    return isinstance(plan, SingleRow) or (isinstance(plan, Aggregate) and not plan.keys)


def _some_row(plan: Plan) -> Plan:
    """A plan that has rows where this one has, and needs no order or number of them."""
    match plan:
        case Project(child=child) | Sort(child=child, limit=None, offset=0):
            return _some_row(child)
        case Limit(child=child, count=count, offset=0) if count is None or count > 0:
            return _some_row(child)
        case _:
            return plan


def _value_over_aggregate(
    plan: Plan, values: Sequence[Expression], outside: Sequence[Expression]
) -> Expression:
    """The first column of projections over an aggregate whose columns have those values."""
    levels: list[Project] = []
    while isinstance(plan, Project):
        levels.append(plan)
        plan = plan.child
    columns = list(values)
    for level in reversed(levels):
        columns = [replace_outer_columns(substitute_own(e, columns), outside) for e in level.expressions]
    return columns[0]


def substitute_own(expression: Expression, columns: Sequence[Expression]) -> Expression:
    """As `substitute`, with columns from outside left as they are."""

    def replace_column(node: Expression) -> Expression:
        return columns[node.index] if isinstance(node, ColumnRef) and node.index >= 0 else node

    return transform(expression, replace_column)
