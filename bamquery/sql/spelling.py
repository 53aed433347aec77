"""The names that result columns get where the statement gives none: the expression, as DuckDB spells it.

Unlike DuckDB, a name that is a keyword to its parser is not quoted: `year(t)`, not `"year"(t)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from sqlglot import exp

from bamquery.sql.parameters import mark
from bamquery.sql.positions import number_text
from bamquery.sql.types import from_syntax, type_name

_PLAIN_NAME: Final = re.compile(r"[^\W\d]\w*")

_INFIX: Final[Mapping[type[exp.Expr], str]] = MappingProxyType(
    {
        exp.Add: "+",
        exp.Sub: "-",
        exp.Mul: "*",
        exp.Div: "/",
        exp.IntDiv: "//",
        exp.Mod: "%",
        exp.Pow: "**",
        exp.DPipe: "||",
        exp.EQ: "=",
        exp.NEQ: "!=",
        exp.LT: "<",
        exp.LTE: "<=",
        exp.GT: ">",
        exp.GTE: ">=",
        exp.And: "AND",
        exp.Or: "OR",
        exp.NullSafeEQ: "IS NOT DISTINCT FROM",
        exp.NullSafeNEQ: "IS DISTINCT FROM",
    }
)


def column_name(node: exp.Expr, sql: str) -> str:
    """The name of a select item: its alias, its column's name, or its spelling."""
    node = node.unnest()
    if isinstance(node, exp.Alias):
        return node.alias
    if isinstance(node, exp.Column):
        return node.name
    return spell(node, sql)


def spell(node: exp.Expr, sql: str) -> str:
    """The expression as DuckDB writes it; `sql` is the text that the tree was parsed from."""
    parameter = mark(node)
    if parameter is not None:
        return parameter
    symbol = _INFIX.get(type(node))
    if symbol is not None:
        return f"({spell(node.this, sql)} {symbol} {spell(node.expression, sql)})"
    return _SPELLERS[type(node)](node, sql)


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def _list(nodes: list[exp.Expr], sql: str) -> str:
    return ", ".join(spell(node, sql) for node in nodes)


def _column(node: exp.Expr, sql: str) -> str:
    return ".".join(_name(part.name) for part in node.parts)  # type: ignore[attr-defined]


def _literal(node: exp.Literal, sql: str) -> str:
    if node.is_string:
        return "'" + node.name.replace("'", "''") + "'"
    return number_text(node, sql)


def _minus(node: exp.Expr, sql: str) -> str:
    operand = spell(node.this, sql)
    return f"-{operand}" if isinstance(node.this, exp.Literal) else f"(-({operand}))"


def _is(node: exp.Expr, sql: str) -> str:
    operand, value = node.this, node.expression
    if isinstance(value, exp.Null):
        return f"({spell(operand, sql)} IS NULL)"
    return f"(CAST({spell(operand, sql)} AS BOOLEAN) IS NOT DISTINCT FROM {spell(value, sql)})"


def _not(node: exp.Expr, sql: str) -> str:
    below = node.this
    if isinstance(below, exp.Is):
        if isinstance(below.expression, exp.Null):
            return f"({spell(below.this, sql)} IS NOT NULL)"
        truth = spell(below.expression, sql)
        return f"(CAST({spell(below.this, sql)} AS BOOLEAN) IS DISTINCT FROM {truth})"
    return f"(NOT {spell(below, sql)})"


def _between(node: exp.Expr, sql: str) -> str:
    low, high = spell(node.args["low"], sql), spell(node.args["high"], sql)
    return f"({spell(node.this, sql)} BETWEEN {low} AND {high})"


def _in(node: exp.Expr, sql: str) -> str:
    return f"({spell(node.this, sql)} IN ({_list(node.expressions, sql)}))"


def _like(symbol: str) -> Callable[[Any, str], str]:
    def speller(node: exp.Expr, sql: str) -> str:
        negation = "!" if node.args.get("negate") else ""
        return f"({spell(node.this, sql)} {negation}{symbol} {spell(node.expression, sql)})"

    return speller


def _case(node: exp.Expr, sql: str) -> str:
    subject = node.this
    branches = []
    for branch in node.args["ifs"]:
        condition = spell(branch.this, sql)
        if subject is not None:
            condition = f"({spell(subject, sql)} = {condition})"
        branches.append(f" WHEN ({condition}) THEN ({spell(branch.args['true'], sql)})")
    otherwise = node.args.get("default")
    return f"CASE {''.join(branches)} ELSE {'NULL' if otherwise is None else spell(otherwise, sql)} END"


def _if(node: exp.Expr, sql: str) -> str:
    parts = [node.this, node.args["true"], node.args.get("false")]
    return f"if({_list([part for part in parts if part is not None], sql)})"


def _cast(keyword: str) -> Callable[[Any, str], str]:
    def speller(node: exp.Expr, sql: str) -> str:
        kind = from_syntax(node.args["to"])
        return f"{keyword}({spell(node.this, sql)} AS {type_name(kind) if kind is not None else '?'})"

    return speller


def _extract(node: exp.Expr, sql: str) -> str:
    return f"date_part('{node.name}', {spell(node.expression, sql)})"


def _substring(node: exp.Expr, sql: str) -> str:
    parts = [node.this, node.args.get("start"), node.args.get("length")]
    return f"substring({_list([part for part in parts if part is not None], sql)})"


def _function(node: exp.Expr, sql: str) -> str:
    name = node.name.lower()
    arguments = node.expressions
    if name == "count" and (not arguments or isinstance(arguments[0], exp.Star)):
        return "count_star()"
    if name in {"coalesce", "ifnull"}:
        name = "COALESCE"
    if arguments and isinstance(arguments[0], exp.Distinct):
        return f"{name}(DISTINCT {_list(arguments[0].expressions, sql)})"
    return f"{name}({_list(arguments, sql)})"


def _filter(node: exp.Expr, sql: str) -> str:
    return f"{spell(node.this, sql)} FILTER (WHERE {spell(node.expression.this, sql)})"


_SPELLERS: Final[Mapping[type[exp.Expr], Callable[[Any, str], str]]] = MappingProxyType(
    {
        exp.Column: _column,
        exp.Literal: _literal,
        exp.Boolean: lambda node, sql: "true" if node.this else "false",
        exp.Null: lambda node, sql: "NULL",
        exp.Paren: lambda node, sql: spell(node.this, sql),
        exp.Neg: _minus,
        exp.Is: _is,
        exp.Not: _not,
        exp.Between: _between,
        exp.In: _in,
        exp.Like: _like("~~"),
        exp.ILike: _like("~~*"),
        exp.Case: _case,
        exp.If: _if,
        exp.Cast: _cast("CAST"),
        exp.TryCast: _cast("TRY_CAST"),
        exp.Extract: _extract,
        exp.Substring: _substring,
        exp.Trim: lambda node, sql: f"trim({spell(node.this, sql)})",
        exp.Anonymous: _function,
        exp.Filter: _filter,
    }
)
