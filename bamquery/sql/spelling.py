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
from bamquery.sql.scalar.intervals import AMOUNTS, UNITS
from bamquery.sql.types import from_syntax, type_name
from bamquery.sql.window_syntax import read_window, windows_around

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
        exp.BitwiseAnd: "&",
        exp.BitwiseOr: "|",
        exp.BitwiseLeftShift: "<<",
        exp.BitwiseRightShift: ">>",
        exp.Glob: "~~~",
        exp.StartsWith: "^@",
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


_OVER_WINDOW: Final = MappingProxyType({"count_star": "count", "first": "first_value", "last": "last_value"})
"""Functions that DuckDB calls otherwise where they have OVER."""


def column_name(node: exp.Expr, sql: str) -> str:
    """The name of a select item: its alias, its column's name, or its spelling."""
    while isinstance(node, exp.Paren):
        node = node.this
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
    if node.args.get("query") is not None:
        return f"({spell(node.this, sql)} = ANY({_query(node.args['query'], sql)}))"
    return f"({spell(node.this, sql)} IN ({_list(node.expressions, sql)}))"


def _query(node: exp.Expr, sql: str) -> str:
    """A query, shortened to what it selects."""
    while isinstance(node, exp.Subquery | exp.Paren):
        node = node.this
    if not isinstance(node, exp.Select):
        return "..."
    items = [column_name(item, sql) if not item.is_star else "*" for item in node.expressions]
    return f"SELECT {', '.join(items)}{' ...' if node.args.get('from_') else ''}"


def _quantified(word: str) -> Callable[[Any, str], str]:
    return lambda node, sql: f"{word}({_query(node.this, sql)})"


def _exists(node: exp.Expr, sql: str) -> str:
    return f"EXISTS({_query(node.this, sql)})"


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
    unit = node.name.upper()
    unit = f"{unit}S" if unit in ("MICROSECOND", "MILLISECOND") else node.name
    return f"date_part('{unit}', {spell(node.expression, sql)})"


def _substring(node: exp.Expr, sql: str) -> str:
    parts = [node.this, node.args.get("start"), node.args.get("length")]
    return f"substring({_list([part for part in parts if part is not None], sql)})"


def _call(name: str, *parts: str) -> Callable[[Any, str], str]:
    """A function that is written in a way of its own; `parts` are its arguments that are there."""

    def speller(node: exp.Expr, sql: str) -> str:
        given = [node.args[part] for part in parts if node.args.get(part) is not None]
        return f"{name}({_list(given, sql)})"

    return speller


def _escape(node: exp.Expr, sql: str) -> str:
    match = node.this
    name = f"{'not_' if match.args.get('negate') else ''}{'i' * isinstance(match, exp.ILike)}like_escape"
    return f"{name}({_list([match.this, match.expression, node.expression], sql)})"


def _trim(node: exp.Expr, sql: str) -> str:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")).upper(), "trim")
    return _call(name, "this", "expression")(node, sql)


def _interval(node: exp.Expr, sql: str) -> str:
    amount, unit = spell(node.this, sql), node.args.get("unit")
    if unit is None:
        return f"CAST({amount} AS INTERVAL)"
    function = UNITS[unit.name.lower()]
    amount = f"CAST({amount} AS DOUBLE)"
    kind = AMOUNTS.get(function)
    return f"{function}({amount if kind is None else f'CAST(trunc({amount}) AS {kind})'})"


def _function(node: exp.Expr, sql: str) -> str:
    name = node.name.lower()
    arguments = node.expressions
    if name == "count" and (not arguments or isinstance(arguments[0], exp.Star)):
        return "count_star()"
    if name in {"grouping", "grouping_id"}:
        name = "GROUPING"
    if name in {"coalesce", "ifnull"}:
        name = "COALESCE"
    return f"{name}({_list(arguments, sql)})"


def _distinct(node: exp.Expr, sql: str) -> str:
    return f"DISTINCT {_list(node.expressions, sql)}"


def _order(node: exp.Expr, sql: str) -> str:
    terms = f"ORDER BY {_list(node.expressions, sql)}"
    return terms if node.this is None else f"{spell(node.this, sql)} {terms}"


def _ordered(node: exp.Expr, sql: str) -> str:
    text = node.this.name if isinstance(node.this, exp.Var) else spell(node.this, sql)
    descending, nulls_first = node.args.get("desc"), node.args.get("nulls_first")
    return text + (" DESC" if descending else "") + (" NULLS FIRST" if nulls_first else "")


def _window(node: exp.Expr, sql: str) -> str:
    assert isinstance(node, exp.Window)
    call = spell(node.this, sql)
    for name, over_window in _OVER_WINDOW.items():
        if call.startswith(f"{name}("):
            call = over_window + call.removeprefix(name)
    try:
        window = read_window(node, windows_around(node))
    except ValueError:  # said where it is bound
        return f"{call} OVER (...)"
    parts = []
    if window.partition:
        parts.append(f"PARTITION BY {_list(list(window.partition), sql)}")
    if window.order:
        parts.append(f"ORDER BY {_list(list(window.order), sql)}")
    if window.frame is not None:
        parts.append(spell(window.frame, sql))
    return f"{call} OVER ({' '.join(parts)})"


def _frame(node: exp.Expr, sql: str) -> str:
    start = _bound(node.args.get("start"), node.args.get("start_side"), sql)
    end = _bound(node.args.get("end") or "CURRENT ROW", node.args.get("end_side"), sql)
    exclude = node.args.get("exclude")
    words = "" if exclude is None or exclude.name == "NO OTHERS" else f" EXCLUDE {exclude.name}"
    return f"{node.args['kind']} BETWEEN {start} AND {end}{words}"


def _bound(value: exp.Expr | str | None, side: str | None, sql: str) -> str:
    text = spell(value, sql) if isinstance(value, exp.Expr) else str(value)
    return f"{text} {side}" if side else text


def _within_group(node: exp.Expr, sql: str) -> str:
    name = node.this.name.lower()
    if not name.startswith("percentile"):
        return f"{spell(node.this, sql)} WITHIN GROUP ( {spell(node.expression, sql)})"
    arguments = _list(node.this.expressions, sql)
    return f"{name.replace('percentile', 'quantile')}({arguments} {spell(node.expression, sql)})"


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
        exp.Trim: _trim,
        exp.Abs: lambda node, sql: f"(@({spell(node.this, sql)}))",
        exp.BitwiseNot: lambda node, sql: f"(~({spell(node.this, sql)}))",
        exp.Escape: _escape,
        exp.SimilarTo: _call("regexp_full_match", "this", "expression"),
        exp.RegexpLike: _call("regexp_matches", "this", "expression"),
        exp.Interval: _interval,
        exp.AtTimeZone: _call("timezone", "zone", "this"),
        exp.StrPosition: _call("position", "this", "substr"),
        exp.Overlay: _call("overlay", "this", "expression", "from_", "for_"),
        exp.CurrentDate: lambda node, sql: "current_date",
        exp.CurrentTimestamp: lambda node, sql: "current_timestamp",
        exp.Localtime: lambda node, sql: "localtime",
        exp.Localtimestamp: lambda node, sql: "localtimestamp",
        exp.Anonymous: _function,
        exp.Filter: _filter,
        exp.Subquery: lambda node, sql: f"({_query(node, sql)})",
        exp.Exists: _exists,
        exp.Any: _quantified("ANY"),
        exp.All: _quantified("ALL"),
        exp.Star: lambda node, sql: "*",
        exp.Distinct: _distinct,
        exp.Order: _order,
        exp.Ordered: _ordered,
        exp.WithinGroup: _within_group,
        exp.Window: _window,
        exp.WindowSpec: _frame,
        exp.IgnoreNulls: lambda node, sql: f"{spell(node.this, sql)} IGNORE NULLS",
        exp.RespectNulls: lambda node, sql: spell(node.this, sql),
    }
)
