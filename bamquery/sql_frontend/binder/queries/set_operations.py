"""UNION, INTERSECT and EXCEPT: columns brought to common types, and rows put together or compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from sqlglot import exp

from bamquery.data_types import type_groups as types
from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Expression, Literal
from bamquery.plan.literals.scalars import scalar
from bamquery.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Plan,
    Project,
    Repeat,
    Union,
)
from bamquery.plan.rewriting import columns_of, conjunction
from bamquery.sql_frontend.binder.queries.set_operation_branches import Rows
from bamquery.sql_frontend.binder.scope import Scope
from bamquery.sql_frontend.fault_collection import apply_to_each, errors_at
from bamquery.sql_frontend.functions.coercion import coerce, combined_type, decode
from bamquery.sql_frontend.functions.operators import explicit_cast
from bamquery.sql_frontend.sql_types import type_name
from bamquery.statement_context.cancellation import check_cancelled, check_each
from bamquery.text.identifiers import fold_case as fold_name

BindQuery = Callable[[exp.Expr], Rows]

_COUNT: Final = pa.int64()


def bind_set_operation(node: exp.SetOperation, sql: str, bind: BindQuery) -> Rows:
    """The rows of both queries, or those that both have, or those that only the first one has.

    Names are those of the first query; what the others have written comes along, for ORDER BY knows it too.
    Rows are compared with nulls equal to each other, as by GROUP BY.

    Raises:
        SqlError: a query is wrong, the numbers of columns differ, or types have nothing in common.
    """
    operands = _flatten_operands(node)
    links = [operand.link or node for operand in operands]
    rows: Sequence[Rows] = apply_to_each(bind, [operand.node for operand in operands], sql)
    ranked = [_Ranked(member, operand.rank) for member, operand in zip(rows, operands, strict=True)]
    whole, place = ranked[0], 1
    while place < len(links):
        link = links[place]
        end = place + 1
        while isinstance(link, exp.Union) and end < len(links) and _is_alike(links[end], link):
            end += 1
        members = [whole, *ranked[place:end]]
        plan = _combine_plans(
            link, _align_types(links[place:end], [member.rows.plan for member in members], sql)
        )
        branches = [
            branch.map_columns(_places(member.rows.plan, plan, link))
            for member in check_each(members)
            for branch in member.rows.branches
        ]
        whole, place = _Ranked(Rows(plan, branches, _sort_scopes(members), combined=True), (0,)), end
    return whole.rows


@dataclass(frozen=True)
class _Operand:
    """An operand of a chain.

    Attributes:
        link: the operation that adds it; None for the first one.
        rank: its place, after the places of parentheses around it that are no part of the chain itself.
    """

    link: exp.SetOperation | None
    node: exp.Expr
    rank: tuple[int, ...]


@dataclass(frozen=True)
class _Ranked:
    rows: Rows
    rank: tuple[int, ...]


def _sort_scopes(members: Sequence[_Ranked]) -> list[Scope]:
    """The scopes of all: the operands that are a SELECT, then those of set operations among them in turn."""
    ranked = [
        (_levels((*member.rank, number) if member.rows.combined else member.rank), scope)
        for member in members
        for number, scope in enumerate(member.rows.scopes)
    ]
    return [scope for _, scope in sorted(ranked, key=lambda pair: pair[0])]


def _levels(rank: tuple[int, ...]) -> list[tuple[bool, int]]:
    """A key by which places come before those that are within another place."""
    return [(place < len(rank) - 1, number) for place, number in enumerate(rank)]


def _places(operand: Plan, whole: Plan, link: exp.SetOperation) -> Sequence[int]:
    """Which column of the whole each of the operand's columns is."""
    if not link.args.get("by_name"):
        return range(len(operand.fields))
    names = [fold_name(name) for name in _names(whole)]
    return [names.index(fold_name(name)) for name in _names(operand)]


def _align_types(links: Sequence[exp.SetOperation], plans: Sequence[Plan], sql: str) -> list[Plan]:
    """Plans with columns that correspond, of types that all have in common; a link between any two."""
    by_name = bool(links[0].args.get("by_name"))
    if by_name:
        with errors_at(sql, links[0]):
            plans = _aligned_by_name(plans)
    for link, plan in zip(links, plans[1:], strict=True):
        check_cancelled()
        with errors_at(sql, link):
            if len(plan.fields) != len(plans[0].fields):
                raise ValueError(
                    f"{_word(link)} needs as many columns on both sides: there are {len(plans[0].fields)} "
                    f"and {len(plan.fields)}"
                )
    kinds = [types.value_type(field.type) for field in plans[0].fields]
    for link, plan in zip(links, plans[1:], strict=True):
        check_cancelled()
        with errors_at(sql, link):
            kinds = _common_types(kinds, plan, _names(plans[0]))
    return [_cast(plan, kinds, _names(plans[0])) for plan in check_each(plans)]


def _flatten_operands(node: exp.SetOperation) -> list[_Operand]:
    """All operands, each with the operation that adds it, out of parentheses that change nothing.

    That is those at the start, and those around UNIONs that are of the kind of the one before them. What a
    chain of one kind of UNION puts together takes its types from all of it at once: 1, 2.50 and 'x' are '1',
    '2.50' and 'x', not '1.00'.
    """
    chain = _chain(node)
    found: list[_Operand] = []
    for link, operand in [(None, chain[0].this), *((link, link.expression) for link in chain)]:
        check_cancelled()
        place = found[-1].rank[0] + 1 if found else 0
        within = _parenthesised_operation(operand)
        inner = [] if within is None else _flatten_operands(within)
        if not inner or (link is not None and not all(_is_alike(other.link, link) for other in inner[1:])):
            found.append(_Operand(link, operand, (place,)))
            continue
        inner[0] = replace(inner[0], link=link)
        found += [one if link is None else replace(one, rank=(place, *one.rank)) for one in inner]
    return found


def _parenthesised_operation(node: exp.Expr) -> exp.SetOperation | None:
    """The set operation in parentheses, where neither these nor it have clauses or a name; else None."""
    inner = node
    while isinstance(inner, exp.Subquery) and not any(
        value for name, value in inner.args.items() if name != "this"
    ):
        inner = inner.this
    if inner is node or not isinstance(inner, exp.SetOperation) or _has_own_clauses(inner):
        return None
    return inner


def _is_alike(node: exp.SetOperation | None, other: exp.SetOperation) -> bool:
    """Whether both are UNION, both with ALL or both without, both BY NAME or both not."""
    return (
        isinstance(node, exp.Union)
        and isinstance(other, exp.Union)
        and all(bool(node.args.get(name)) == bool(other.args.get(name)) for name in ("distinct", "by_name"))
    )


def _chain(node: exp.SetOperation) -> list[exp.SetOperation]:
    """The operation, and those before it that are its first operand, and so on: first ones first.

    They are bound one after the other, not one within the other, since such chains get long.
    """
    chain = [node]
    while isinstance(chain[-1].this, exp.SetOperation) and not _has_own_clauses(chain[-1].this):
        chain.append(chain[-1].this)
    return chain[::-1]


def _has_own_clauses(node: exp.SetOperation) -> bool:
    """Whether it has clauses of its own, which no operand has without parentheses."""
    return any(node.args.get(name) for name in ("with_", "order", "limit", "offset"))


def _combine_plans(node: exp.SetOperation, plans: Sequence[Plan]) -> Plan:
    distinct = bool(node.args.get("distinct"))
    if isinstance(node, exp.Union):
        both = Union(tuple(one for plan in plans for one in _inputs(plan)))
        return _distinct(both) if distinct else both
    left, right = plans
    if isinstance(node, exp.Intersect):
        return _rows_in_both(left, right, "semi") if distinct else _rows_by_count(left, right, "intersect")
    return _rows_in_both(left, right, "anti") if distinct else _rows_by_count(left, right, "except")


def _word(node: exp.SetOperation) -> str:
    return type(node).__name__.upper()


def _inputs(plan: Plan) -> tuple[Plan, ...]:
    return plan.inputs if isinstance(plan, Union) else (plan,)


def _distinct(plan: Plan) -> Plan:
    return Aggregate(plan, columns_of(plan), (), _names(plan))


def _names(plan: Plan) -> tuple[str, ...]:
    return tuple(field.name for field in plan.fields)


def _aligned_by_name(plans: Sequence[Plan]) -> list[Plan]:
    """All with the columns of any, those that one has not null; the first one's come first."""
    names: dict[str, str] = {}
    for plan in plans:
        folded = [fold_name(name) for name in _names(plan)]
        twice = [name for name in folded if folded.count(name) > 1]
        if twice:
            raise ValueError(f'BY NAME needs columns of different names: "{twice[0]}" is there twice')
        names = {**dict(zip(folded, _names(plan), strict=True)), **names}
    ordered = list(dict.fromkeys(fold_name(name) for plan in plans for name in _names(plan)))

    def arrange_columns(plan: Plan) -> Plan:
        columns = {fold_name(column.name): column for column in columns_of(plan)}
        nothing: Expression = Literal(scalar(None, pa.null()))
        chosen = [columns.get(name, nothing) for name in ordered]
        return Project(plan, tuple(chosen), tuple(names[name] for name in ordered))

    return [arrange_columns(plan) for plan in plans]


def _common_types(kinds: Sequence[pa.DataType], plan: Plan, names: Sequence[str]) -> list[pa.DataType]:
    """The types so far, and with them those of the plan."""
    found = []
    for kind, field, name in zip(kinds, plan.fields, names, strict=True):
        common = _common(kind, types.value_type(field.type))
        if common is None:
            both = f"{type_name(kind)} and {type_name(field.type)}"
            raise ValueError(f'{both} do not mix in column "{name}": cast one of them')
        found.append(common)
    return found


def _common(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type of a column of both; unlike elsewhere text takes anything in."""
    kind = combined_type(left, right)
    if kind is None and (types.is_string(left) or types.is_string(right)):
        return pa.large_string()
    return kind


def _cast(plan: Plan, kinds: Sequence[pa.DataType], names: tuple[str, ...]) -> Plan:
    columns = columns_of(plan)
    values = tuple(_cast_to(decode(column), kind) for column, kind in zip(columns, kinds, strict=True))
    if values == columns and names == _names(plan):
        return plan
    return Project(plan, values, names)


def _cast_to(value: Expression, kind: pa.DataType) -> Expression:
    if value.type == kind:
        return value
    return explicit_cast(value, kind) if types.is_string(kind) else coerce(value, kind)


def _rows_in_both(left: Plan, right: Plan, kind: str) -> Plan:
    """The distinct rows of the first plan that the second one has, or has not."""
    once = _distinct(left)
    width = len(left.fields)
    conditions = [
        Call("is_not_distinct_from", (mine, replace(other, index=width + other.index)), pa.bool_())
        for mine, other in zip(columns_of(once), columns_of(right), strict=True)
    ]
    return Join(once, right, "semi" if kind == "semi" else "anti", conjunction(conditions))


def _rows_by_count(left: Plan, right: Plan, kind: str) -> Plan:
    """INTERSECT ALL and EXCEPT ALL: each row as often as both have it, or as the first has it more often."""
    width = len(left.fields)

    def mark_side(plan: Plan, mine: bool) -> Plan:
        truth = Literal(scalar(mine, pa.bool_()))
        return Project(plan, (*columns_of(plan), truth), (*_names(plan), "mine"))

    both = Union((mark_side(left, True), mark_side(right, False)))
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
    some = Filter(counted, Call("greater", (count, Literal(scalar(0, _COUNT))), pa.bool_()))
    repeated = Repeat(some, count)
    return Project(repeated, columns_of(repeated)[:width], _names(left))
