"""UNION, INTERSECT and EXCEPT: columns brought to common types, and rows put together or compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from sqlglot import exp

from bamquery.naming import fold as fold_name
from bamquery.naming import suggestion
from bamquery.plan import types
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Expression, Literal
from bamquery.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Plan,
    Project,
    Repeat,
    Sort,
    SortKey,
    Union,
)
from bamquery.plan.rewriting import columns_of, conjunction
from bamquery.sql.binder_expressions import ExpressionBinder
from bamquery.sql.coercion import coerce, combine, decode
from bamquery.sql.failures import each, placed
from bamquery.sql.operators import explicit_cast
from bamquery.sql.scope import Scope
from bamquery.sql.types import type_name

BindQuery = Callable[[exp.Expr], Plan]

_COUNT: Final = pa.int64()


def bind_set_operation(node: exp.SetOperation, sql: str, bind: BindQuery) -> tuple[Plan, Sequence[str]]:
    """The rows of both queries, or those that both have, or those that only the first one has.

    Names are those of the first query; those of the second come along, for ORDER BY knows them too. Rows
    are compared with nulls equal to each other, as by GROUP BY.

    Raises:
        SqlError: a query is wrong, the numbers of columns differ, or types have nothing in common.
    """
    chain = _chain(node)
    first, *others = each(bind, [chain[0].this, *(link.expression for link in chain)], sql)
    plan = first
    for place, (link, operand) in enumerate(zip(chain, others, strict=True)):
        left, right = _alike(link, plan, operand, sql)
        if place and left is plan and _is_distinct_union(link) and _is_distinct_union(chain[place - 1]):
            assert isinstance(left, Aggregate)
            left = left.child  # what is distinct in the end need not be so before
        plan = _combined(link, left, right)
    return plan, _names(others[-1])


def _alike(node: exp.SetOperation, left: Plan, right: Plan, sql: str) -> tuple[Plan, Plan]:
    """Both sides with columns that correspond, of common types."""
    with placed(sql, node):
        if node.args.get("by_name"):
            left, right = _aligned_by_name(left, right)
        if len(left.fields) != len(right.fields):
            raise ValueError(
                f"{_word(node)} needs as many columns on both sides: there are {len(left.fields)} "
                f"and {len(right.fields)}"
            )
        return _of_common_types(left, right)


def _chain(node: exp.SetOperation) -> list[exp.SetOperation]:
    """The operation, and those before it that are its first operand, and so on: first ones first.

    They are bound one after the other, not one within the other, since such chains get long.
    """
    chain = [node]
    while isinstance(chain[-1].this, exp.SetOperation) and not _arranges(chain[-1].this):
        chain.append(chain[-1].this)
    return chain[::-1]


def _arranges(node: exp.SetOperation) -> bool:
    """Whether it has clauses of its own, which no operand has without parentheses."""
    return any(node.args.get(name) for name in ("with_", "order", "limit", "offset"))


def _is_distinct_union(node: exp.SetOperation) -> bool:
    return isinstance(node, exp.Union) and bool(node.args.get("distinct"))


def _combined(node: exp.SetOperation, left: Plan, right: Plan) -> Plan:
    distinct = bool(node.args.get("distinct"))
    match node:
        case exp.Union():
            both = Union((*_inputs(left), *_inputs(right)))
            return _distinct(both) if distinct else both
        case exp.Intersect():
            return _matching(left, right, "semi") if distinct else _counted(left, right, "intersect")
        case _:
            return _matching(left, right, "anti") if distinct else _counted(left, right, "except")


def ordered_output(plan: Plan, order: exp.Order | None, sql: str, names: Sequence[str]) -> Plan:
    """ORDER BY on the rows of a query put together of others: positions, names, expressions of columns.

    `names` are the second query's, which do as well.
    """
    if order is None:
        return plan
    columns = columns_of(plan)
    binder = ExpressionBinder(sql, Scope.of("", plan.fields), "ORDER BY")

    def keys(term: exp.Ordered) -> list[SortKey]:
        with placed(sql, term.this):
            found: Sequence[Expression] = _ordered_columns(term.this, columns, names)
        found = found or [binder.bind(term.this)]
        descending, nulls_first = bool(term.args.get("desc")), bool(term.args.get("nulls_first"))
        return [SortKey(decode(column), descending, nulls_first) for column in found]

    terms = each(keys, order.expressions, sql)
    return Sort(plan, tuple(key for group in terms for key in group))


def _ordered_columns(
    node: exp.Expr, columns: Sequence[ColumnRef], names: Sequence[str]
) -> Sequence[ColumnRef]:
    """What is meant by ALL, a position or a name; nothing for an expression."""
    if isinstance(node, exp.Var) and node.this == "ALL":
        return columns
    if isinstance(node, exp.Literal) and not node.args["is_string"] and str(node.this).isdecimal():
        position = int(node.this)
        if not 1 <= position <= len(columns):
            raise ValueError(f"ORDER BY {position} is not one of the {len(columns)} columns selected")
        return [columns[position - 1]]
    if isinstance(node, exp.Column):
        for known in ([column.name for column in columns], names):
            for name, column in zip(known, columns, strict=False):
                if fold_name(name) == fold_name(node.name):
                    return [column]
        hint = suggestion(node.name, [column.name for column in columns])
        raise ValueError(f'there is no column "{node.name}" in the result.{hint}')
    return []


def _word(node: exp.SetOperation) -> str:
    return type(node).__name__.upper()


def _inputs(plan: Plan) -> tuple[Plan, ...]:
    return plan.inputs if isinstance(plan, Union) else (plan,)


def _distinct(plan: Plan) -> Plan:
    return Aggregate(plan, columns_of(plan), (), _names(plan))


def _names(plan: Plan) -> tuple[str, ...]:
    return tuple(field.name for field in plan.fields)


def _aligned_by_name(left: Plan, right: Plan) -> tuple[Plan, Plan]:
    """Both with the columns of either, those that one has not null; the first one's come first."""
    for plan in (left, right):
        folded = [fold_name(name) for name in _names(plan)]
        twice = [name for name in folded if folded.count(name) > 1]
        if twice:
            raise ValueError(f'BY NAME needs columns of different names: "{twice[0]}" is there twice')
    ours = [fold_name(name) for name in _names(left)]
    theirs = [fold_name(name) for name in _names(right)]
    new = [name for name in _names(right) if fold_name(name) not in ours]
    names = (*_names(left), *new)

    def arranged(plan: Plan, own: list[str]) -> Plan:
        columns = columns_of(plan)
        nothing: Expression = Literal(pa.scalar(None, pa.null()))
        chosen = [columns[own.index(fold_name(n))] if fold_name(n) in own else nothing for n in names]
        return Project(plan, tuple(chosen), names)

    return arranged(left, ours), arranged(right, theirs)


def _of_common_types(left: Plan, right: Plan) -> tuple[Plan, Plan]:
    kinds = []
    for one, other in zip(left.fields, right.fields, strict=True):
        kind = _common(types.value_type(one.type), types.value_type(other.type))
        if kind is None:
            both = f"{type_name(one.type)} and {type_name(other.type)}"
            raise ValueError(f'{both} do not mix in column "{one.name}": cast one of them')
        kinds.append(kind)
    own = _names(left)
    return _cast(left, kinds, own), _cast(right, kinds, own)


def _common(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type of a column of both; unlike elsewhere text takes anything in."""
    kind = combine(left, right)
    if kind is None and (types.is_string(left) or types.is_string(right)):
        return pa.large_string()
    return kind


def _cast(plan: Plan, kinds: Sequence[pa.DataType], names: tuple[str, ...]) -> Plan:
    columns = columns_of(plan)
    values = tuple(_as(decode(column), kind) for column, kind in zip(columns, kinds, strict=True))
    if values == columns and names == _names(plan):
        return plan
    return Project(plan, values, names)


def _as(value: Expression, kind: pa.DataType) -> Expression:
    if value.type == kind:
        return value
    return explicit_cast(value, kind) if types.is_string(kind) else coerce(value, kind)


def _matching(left: Plan, right: Plan, kind: str) -> Plan:
    """The distinct rows of the first plan that the second one has, or has not."""
    once = _distinct(left)
    width = len(left.fields)
    conditions = [
        Call("is_not_distinct_from", (mine, replace(other, index=width + other.index)), pa.bool_())
        for mine, other in zip(columns_of(once), columns_of(right), strict=True)
    ]
    return Join(once, right, "semi" if kind == "semi" else "anti", conjunction(conditions))


def _counted(left: Plan, right: Plan, kind: str) -> Plan:
    """INTERSECT ALL and EXCEPT ALL: each row as often as both have it, or as the first has it more often."""
    width = len(left.fields)

    def marked(plan: Plan, mine: bool) -> Plan:
        truth = Literal(pa.scalar(mine, pa.bool_()))
        return Project(plan, (*columns_of(plan), truth), (*_names(plan), "mine"))

    both = Union((marked(left, True), marked(right, False)))
    mine = ColumnRef(width, "mine", pa.bool_())
    calls = (
        AggregateCall("count_star", (), _COUNT, filter=mine),
        AggregateCall("count_star", (), _COUNT, filter=Call("not", (mine,), pa.bool_())),
    )
    counted = Aggregate(both, columns_of(both)[:width], calls, (*_names(left), "ours", "theirs"))
    ours, theirs = ColumnRef(width, "ours", _COUNT), ColumnRef(width + 1, "theirs", _COUNT)
    if kind == "intersect":
        fewer = Call("less", (ours, theirs), pa.bool_())
        count: Expression = Call("case", (fewer, ours, theirs), _COUNT)
    else:
        count = Call("subtract", (ours, theirs), _COUNT)
    some = Filter(counted, Call("greater", (count, Literal(pa.scalar(0, _COUNT))), pa.bool_()))
    repeated = Repeat(some, count)
    return Project(repeated, columns_of(repeated)[:width], _names(left))
