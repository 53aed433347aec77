"""How DuckDB spells calls: functions, aggregates with what is around them, windows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sqlglot import exp

from bamquery.sql_frontend.spelling.names import Spell, Speller, spell_list
from bamquery.sql_frontend.syntax.windows import read_window, windows_around

_OVER_WINDOW: Final = MappingProxyType({"count_star": "count", "first": "first_value", "last": "last_value"})
"""Functions that DuckDB calls otherwise where they have OVER."""


def _spell_function(node: exp.Expr, spell: Spell) -> str:
    name = node.name.lower()
    arguments = node.expressions
    if name == "count" and (not arguments or isinstance(arguments[0], exp.Star)):
        return "count_star()"
    if name in {"grouping", "grouping_id"}:
        name = "GROUPING"
    if name in {"coalesce", "ifnull"}:
        name = "COALESCE"
    return f"{name}({spell_list(arguments, spell)})"


def _spell_distinct(node: exp.Expr, spell: Spell) -> str:
    return f"DISTINCT {spell_list(node.expressions, spell)}"


def _spell_order(node: exp.Expr, spell: Spell) -> str:
    terms = f"ORDER BY {spell_list(node.expressions, spell)}"
    return terms if node.this is None else f"{spell(node.this)} {terms}"


def _spell_sort_key(node: exp.Expr, spell: Spell) -> str:
    text = node.this.name if isinstance(node.this, exp.Var) else spell(node.this)
    descending, nulls_first = node.args.get("desc"), node.args.get("nulls_first")
    return text + (" DESC" if descending else "") + (" NULLS FIRST" if nulls_first else "")


def _spell_window(node: exp.Expr, spell: Spell) -> str:
    assert isinstance(node, exp.Window)
    call = spell(node.this)
    for name, over_window in _OVER_WINDOW.items():
        if call.startswith(f"{name}("):
            call = over_window + call.removeprefix(name)
    try:
        window = read_window(node, windows_around(node))
    except ValueError:  # said where it is bound
        return f"{call} OVER (...)"
    parts = []
    if window.partition:
        parts.append(f"PARTITION BY {spell_list(list(window.partition), spell)}")
    if window.order:
        parts.append(f"ORDER BY {spell_list(list(window.order), spell)}")
    if window.frame is not None:
        parts.append(spell(window.frame))
    return f"{call} OVER ({' '.join(parts)})"


def _spell_frame(node: exp.Expr, spell: Spell) -> str:
    start = _spell_bound(node.args.get("start"), node.args.get("start_side"), spell)
    end = _spell_bound(node.args.get("end") or "CURRENT ROW", node.args.get("end_side"), spell)
    exclude = node.args.get("exclude")
    words = "" if exclude is None or exclude.name == "NO OTHERS" else f" EXCLUDE {exclude.name}"
    return f"{node.args['kind'].upper()} BETWEEN {start} AND {end}{words}"


def _spell_bound(value: exp.Expr | str | None, side: str | None, spell: Spell) -> str:
    text = spell(value) if isinstance(value, exp.Expr) else str(value)
    return f"{text} {side.upper()}" if side else text


def _spell_within_group(node: exp.Expr, spell: Spell) -> str:
    name = node.this.name.lower()
    if not name.startswith("percentile"):
        return f"{spell(node.this)} WITHIN GROUP ( {spell(node.expression)})"
    arguments = spell_list(node.this.expressions, spell)
    return f"{name.replace('percentile', 'quantile')}({arguments} {spell(node.expression)})"


def _spell_filter(node: exp.Expr, spell: Spell) -> str:
    return f"{spell(node.this)} FILTER (WHERE {spell(node.expression.this)})"


CALLS: Final[Mapping[type[exp.Expr], Speller]] = MappingProxyType(
    {
        exp.Anonymous: _spell_function,
        exp.Filter: _spell_filter,
        exp.Distinct: _spell_distinct,
        exp.Order: _spell_order,
        exp.Ordered: _spell_sort_key,
        exp.WithinGroup: _spell_within_group,
        exp.Window: _spell_window,
        exp.WindowSpec: _spell_frame,
        exp.IgnoreNulls: lambda node, spell: f"{spell(node.this)} IGNORE NULLS",
        exp.RespectNulls: lambda node, spell: spell(node.this),
    }
)
