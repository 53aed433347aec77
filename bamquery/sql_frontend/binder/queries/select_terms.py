"""Terms of GROUP BY and ORDER BY that are positions of the select list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from sqlglot import exp

from bamquery.sql_frontend.binder.expressions.aggregates import has_aggregate, has_window
from bamquery.sql_frontend.binder.scope import Scope, SelectAliases
from bamquery.sql_frontend.parameters import mark
from bamquery.sql_frontend.syntax.walking import walk

Item = TypeVar("Item")


def ordinal(node: exp.Expr) -> int | None:
    """The number of a term that is one, or None."""
    node = _strip_parentheses(node)
    if isinstance(node, exp.Neg) and (below := ordinal(node.this)) is not None:
        return -below
    if isinstance(node, exp.Literal) and not node.args["is_string"] and str(node.this).isdecimal():
        return int(node.this)
    return None


def check_no_constant(node: exp.Expr) -> None:
    """Raise `ValueError` where a term is a constant, but for a parameter's value."""
    node = _strip_parentheses(node)
    number = _strip_parentheses(node.this) if isinstance(node, exp.Neg) else node
    if isinstance(node, exp.Boolean | exp.Null) or isinstance(number, exp.Literal):
        raise ValueError("ordering by a constant has no effect")


def _strip_parentheses(node: exp.Expr) -> exp.Expr:
    """What stands in parentheses; a parameter's value, which is no position, stays in its own."""
    while isinstance(node, exp.Paren) and mark(node.this) is None:
        node = node.this
    return node


def item_at(items: Sequence[Item], position: int, clause: str) -> Item:
    """The item that a position means; `ValueError` where there is none."""
    if not 1 <= position <= len(items):
        raise ValueError(f"{clause} {position} is not one of the {len(items)} columns selected")
    return items[position - 1]


def check_aliases(node: exp.Expr, scope: Scope, aliases: SelectAliases) -> None:
    """Raise `ValueError` where a term of GROUP BY has an alias in it that is not all of it."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return
    plain = (
        node
        for node in walk(node, prune=lambda below: isinstance(below, exp.Query))
        if isinstance(node, exp.Column) and not node.table and not isinstance(node.this, exp.Star)
    )
    for column in plain:
        if scope.find(column.name) is None and aliases.find(column.name) is not None:
            raise ValueError(f'"{column.name}" is an alias, which GROUP BY takes alone only')


def check_groupable(node: exp.Expr | None) -> None:
    """Raise `ValueError` where an item cannot be grouped by; None is what * stands for."""
    if node is not None and has_aggregate(node):
        raise ValueError("GROUP BY cannot contain aggregates")
    if node is not None and has_window(node):
        raise ValueError("a call over a window (OVER) cannot stand in GROUP BY")
