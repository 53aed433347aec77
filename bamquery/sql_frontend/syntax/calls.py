"""A call of an aggregate or window function as it is written, taken apart: DISTINCT, ORDER BY, FILTER, ..."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from sqlglot import exp

_IN_GROUP: Final = MappingProxyType(
    {"percentile_cont": "quantile_cont", "percentile_disc": "quantile_disc", "mode": "mode"}
)
"""Functions that take WITHIN GROUP, and their names without it."""


_QUANTILES: Final = ("quantile_cont", "quantile_disc")
"""Functions for which ORDER BY within the parentheses is as WITHIN GROUP."""


@dataclass(frozen=True)
class CallSyntax:
    """The parts of a call.

    Attributes:
        node: the function with its parentheses; the place of errors.
        name: of the function, in small letters.
        arguments: without DISTINCT and whatever else stands among them.
        distinct: whether DISTINCT stands before them.
        order: terms of ORDER BY within the parentheses, or of WITHIN GROUP.
        where: the condition of FILTER.
        ignore_nulls: whether IGNORE NULLS is written.
        respect_nulls: whether RESPECT NULLS is, which is so without it.
        ordered_set: whether the only term of ORDER BY says of which order the function tells something.
        descending_quantile: whether that order begins with the greatest value.
    """

    node: exp.Anonymous
    name: str
    arguments: Sequence[exp.Expr]
    distinct: bool = False
    order: Sequence[exp.Ordered] = ()
    where: exp.Expr | None = None
    ignore_nulls: bool = False
    respect_nulls: bool = False
    ordered_set: bool = False
    descending_quantile: bool = False


def function_of(node: exp.Expr) -> exp.Anonymous | None:
    """The function that FILTER, WITHIN GROUP and IGNORE NULLS belong to; None for anything else."""
    while isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    return node if isinstance(node, exp.Anonymous) else None


def query_of_in(node: exp.In) -> exp.Expr | None:
    """The query of IN, VALUES among them; None where it has a list."""
    query: exp.Expr | None = node.args.get("query")
    if query is None and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Values):
        return node.expressions[0]
    return query


def is_windowed(call: exp.Anonymous) -> bool:
    """Whether OVER belongs to the call."""
    node: exp.Expr = call
    while isinstance(node.parent, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.parent.this is node


def read_call(node: exp.Expr) -> CallSyntax:
    """The parts of a call, around which FILTER, WITHIN GROUP and IGNORE NULLS may stand.

    Raises:
        ValueError: they do not go together.
    """
    where: exp.Expr | None = None
    group: exp.Order | None = None
    ignore_nulls = respect_nulls = False
    while not isinstance(node, exp.Anonymous):
        if isinstance(node, exp.Filter):
            where = node.expression.this
        elif isinstance(node, exp.WithinGroup):
            group = node.expression
        elif isinstance(node, exp.IgnoreNulls):
            ignore_nulls = True
        elif isinstance(node, exp.RespectNulls):
            respect_nulls = True
        node = node.this
    name = node.name.lower()
    arguments: list[exp.Expr] = list(node.expressions)
    order: Sequence[exp.Ordered] = ()
    distinct = False
    if arguments and isinstance(arguments[-1], exp.Order):
        last = arguments.pop()
        order = last.expressions
        if last.this is not None:
            arguments.append(last.this)
    if arguments and isinstance(arguments[-1], exp.IgnoreNulls | exp.RespectNulls):
        ignore_nulls = isinstance(arguments[-1], exp.IgnoreNulls)
        respect_nulls = not ignore_nulls
        arguments[-1] = arguments[-1].this
    if arguments and isinstance(arguments[0], exp.Distinct):
        distinct = True
        arguments = [*arguments[0].expressions, *arguments[1:]]
        if not arguments:
            raise ValueError("DISTINCT needs an argument")
    if group is not None:
        return _within_group(node, arguments, group, where)
    if len(order) == 1 and not is_windowed(node):
        if name in _QUANTILES:
            values = [] if len(arguments) > 1 else [order[0].this]
            descending = bool(order[0].args.get("desc"))
            return replace(
                CallSyntax(node, name, [*values, *arguments], distinct, where=where),
                ordered_set=True,
                descending_quantile=descending,
            )
        if name == "mode" and not arguments:
            arguments = [order[0].this]
    return CallSyntax(node, name, arguments, distinct, order, where, ignore_nulls, respect_nulls)


def _within_group(
    node: exp.Anonymous, arguments: Sequence[exp.Expr], group: exp.Order, where: exp.Expr | None
) -> CallSyntax:
    name = _IN_GROUP.get(node.name.lower())
    if name is None:
        raise ValueError(f"{node.name.lower()}() does not take WITHIN GROUP: write ORDER BY within ()")
    if len(group.expressions) != 1:
        raise ValueError("WITHIN GROUP takes one term")
    (term,) = group.expressions
    if name == "mode":
        return CallSyntax(node, name, [term.this, *arguments], order=[term], where=where)
    descending = bool(term.args.get("desc"))
    return replace(
        CallSyntax(node, name, [term.this, *arguments], where=where),
        ordered_set=True,
        descending_quantile=descending,
    )
