"""How DuckDB spells operators and whatever else has a syntax of its own."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sqlglot import exp

from bamquery.sql_frontend.functions.scalar.intervals import AMOUNTS, UNITS
from bamquery.sql_frontend.spelling.names import Spell, Speller, label, spell_list, spell_name
from bamquery.sql_frontend.sql_types import from_syntax, type_name
from bamquery.sql_frontend.syntax import ast_nodes as syntax
from bamquery.sql_frontend.syntax.calls import query_of_in

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


def _spell_column(node: exp.Expr, spell: Spell) -> str:
    return ".".join(spell_name(part.name) for part in node.parts)  # type: ignore[attr-defined]


def _spell_minus(node: exp.Expr, spell: Spell) -> str:
    operand = spell(node.this)
    return f"-{operand}" if isinstance(node.this, exp.Literal) else f"(-({operand}))"


def _spell_is(node: exp.Expr, spell: Spell) -> str:
    operand, value = node.this, node.expression
    if isinstance(value, exp.Null):
        return f"({spell(operand)} IS NULL)"
    return f"(CAST({spell(operand)} AS BOOLEAN) IS NOT DISTINCT FROM {spell(value)})"


def _spell_not(node: exp.Expr, spell: Spell) -> str:
    below = node.this
    if isinstance(below, exp.Is):
        if isinstance(below.expression, exp.Null):
            return f"({spell(below.this)} IS NOT NULL)"
        truth = spell(below.expression)
        return f"(CAST({spell(below.this)} AS BOOLEAN) IS DISTINCT FROM {truth})"
    return f"(NOT {spell(below)})"


def _spell_between(node: exp.Expr, spell: Spell) -> str:
    low, high = spell(node.args["low"]), spell(node.args["high"])
    return f"({spell(node.this)} BETWEEN {low} AND {high})"


def _spell_in(node: exp.In, spell: Spell) -> str:
    query = query_of_in(node)
    if query is not None:
        return f"({spell(node.this)} = ANY({_spell_query(query, spell)}))"
    return f"({spell(node.this)} IN ({spell_list(node.expressions, spell)}))"


def _spell_query(node: exp.Expr, spell: Spell) -> str:
    """A query, shortened to what it selects."""
    while isinstance(node, exp.Subquery | exp.Paren):
        node = node.this
    if not isinstance(node, exp.Select):
        return "..."
    items = [label(item, spell) if not item.is_star else "*" for item in node.expressions]
    return f"SELECT {', '.join(items)}{' ...' if node.args.get('from_') else ''}"


def _quantified_speller(word: str) -> Speller:
    return lambda node, spell: f"{word}({_spell_query(node.this, spell)})"


def _spell_exists(node: exp.Expr, spell: Spell) -> str:
    return f"EXISTS({_spell_query(node.this, spell)})"


def _like(symbol: str) -> Speller:
    def speller(node: exp.Expr, spell: Spell) -> str:
        negation = "!" if node.args.get("negate") else ""
        return f"({spell(node.this)} {negation}{symbol} {spell(node.expression)})"

    return speller


def _spell_bracket(node: exp.Expr, spell: Spell) -> str:
    (place,) = node.expressions
    if isinstance(place, exp.Slice):
        ends = [spell(part) if part is not None else "" for part in (place.this, place.expression)]
        return f"{spell(node.this)}[{':'.join(ends)}]"
    return f"{spell(node.this)}[{spell(place)}]"


def _spell_case(node: exp.Expr, spell: Spell) -> str:
    subject = node.this
    branches = []
    for branch in node.args["ifs"]:
        condition = spell(branch.this)
        if subject is not None:
            condition = f"({spell(subject)} = {condition})"
        branches.append(f" WHEN ({condition}) THEN ({spell(branch.args['true'])})")
    otherwise = node.args.get("default")
    return f"CASE {''.join(branches)} ELSE {'NULL' if otherwise is None else spell(otherwise)} END"


def _spell_if(node: exp.Expr, spell: Spell) -> str:
    parts = [node.this, node.args["true"], node.args.get("false")]
    return f"if({spell_list([part for part in parts if part is not None], spell)})"


def _type(node: exp.DataType) -> str:
    kind = from_syntax(node)
    return "?" if kind is None else type_name(kind).replace(",", ", ")


def _cast(keyword: str) -> Speller:
    def speller(node: exp.Expr, spell: Spell) -> str:
        return f"{keyword}({spell(node.this)} AS {_type(node.args['to'])})"

    return speller


def _spell_extract(node: exp.Expr, spell: Spell) -> str:
    unit = node.name.upper()
    unit = f"{unit}S" if unit in ("MICROSECOND", "MILLISECOND") else node.name
    return f"date_part('{unit}', {spell(node.expression)})"


def _spell_substring(node: exp.Expr, spell: Spell) -> str:
    parts = [node.this, node.args.get("start"), node.args.get("length")]
    return f"substring({spell_list([part for part in parts if part is not None], spell)})"


def _call(name: str, *parts: str) -> Speller:
    """A function that is written in a way of its own; `parts` are its arguments that are there."""

    def speller(node: exp.Expr, spell: Spell) -> str:
        given = [node.args[part] for part in parts if node.args.get(part) is not None]
        return f"{name}({spell_list(given, spell)})"

    return speller


def _spell_escape(node: exp.Expr, spell: Spell) -> str:
    match = node.this
    name = f"{'not_' if match.args.get('negate') else ''}{'i' * isinstance(match, exp.ILike)}like_escape"
    return f"{name}({spell_list([match.this, match.expression, node.expression], spell)})"


def _spell_trim(node: exp.Expr, spell: Spell) -> str:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")).upper(), "trim")
    return _call(name, "this", "expression")(node, spell)


def _spell_interval(node: exp.Expr, spell: Spell) -> str:
    amount, unit = spell(node.this), node.args.get("unit")
    if unit is None:
        return f"CAST({amount} AS INTERVAL)"
    function = UNITS[unit.name.lower()]
    amount = f"CAST({amount} AS DOUBLE)"
    kind = AMOUNTS.get(function)
    return f"{function}({amount if kind is None else f'CAST(trunc({amount}) AS {kind})'})"


def _infix(symbol: str) -> Speller:
    return lambda node, spell: f"({spell(node.this)} {symbol} {spell(node.expression)})"


FORMS: Final[Mapping[type[exp.Expr], Speller]] = MappingProxyType(
    {
        **{kind: _infix(symbol) for kind, symbol in _INFIX.items()},
        exp.Column: _spell_column,
        exp.Bracket: _spell_bracket,
        exp.HexString: lambda node, spell: f"X'{node.name}'",
        exp.Boolean: lambda node, spell: "true" if node.this else "false",
        exp.Null: lambda node, spell: "NULL",
        exp.Paren: lambda node, spell: spell(node.this),
        exp.Neg: _spell_minus,
        syntax.Plus: lambda node, spell: f"(+({spell(node.this)}))",
        exp.Is: _spell_is,
        exp.Not: _spell_not,
        exp.Between: _spell_between,
        exp.In: _spell_in,
        exp.Like: _like("~~"),
        exp.ILike: _like("~~*"),
        exp.Case: _spell_case,
        exp.If: _spell_if,
        exp.Cast: _cast("CAST"),
        exp.TryCast: _cast("TRY_CAST"),
        exp.Extract: _spell_extract,
        exp.Substring: _spell_substring,
        exp.Trim: _spell_trim,
        exp.Abs: lambda node, spell: f"(@({spell(node.this)}))",
        exp.BitwiseNot: lambda node, spell: f"(~({spell(node.this)}))",
        exp.Escape: _spell_escape,
        exp.SimilarTo: _call("regexp_full_match", "this", "expression"),
        exp.RegexpLike: _call("regexp_matches", "this", "expression"),
        exp.Interval: _spell_interval,
        exp.AtTimeZone: _call("timezone", "zone", "this"),
        exp.StrPosition: _call("position", "this", "substr"),
        exp.Overlay: _call("overlay", "this", "expression", "from_", "for_"),
        exp.CurrentDate: lambda node, spell: "current_date",
        exp.CurrentTimestamp: lambda node, spell: "current_timestamp",
        exp.Localtime: lambda node, spell: "localtime",
        exp.Localtimestamp: lambda node, spell: "localtimestamp",
        exp.Subquery: lambda node, spell: f"({_spell_query(node, spell)})",
        exp.Exists: _spell_exists,
        exp.Tuple: lambda node, spell: f"row({spell_list(node.expressions, spell)})",
        exp.Any: _quantified_speller("ANY"),
        exp.All: _quantified_speller("ALL"),
        exp.Star: lambda node, spell: "*",
    }
)
