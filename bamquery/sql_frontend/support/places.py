"""Nodes that are read in some places, or forms, only: what each is called where it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from sqlglot import exp

from bamquery.function_catalog.session import SESSION_FUNCTIONS
from bamquery.function_catalog.table_functions import FILE_FUNCTIONS, SYSTEM_FUNCTIONS
from bamquery.sql_frontend.functions.aggregates import is_aggregate
from bamquery.sql_frontend.syntax import ast_nodes as syntax
from bamquery.sql_frontend.syntax.calls import is_windowed

_ORDERINGS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_COMPARISONS: Final = (*_ORDERINGS, exp.NullSafeEQ, exp.NullSafeNEQ)


def _join(node: exp.Expr) -> str | None:
    around = node.parent
    while isinstance(around, exp.Subquery) and isinstance(around.parent, exp.Subquery):
        around = around.parent
    if isinstance(around, exp.Subquery) and not isinstance(around.parent, (exp.From, exp.Join)):
        return "JOIN outside of FROM"
    method, side, kind = (str(node.args.get(key) or "").upper() for key in ("method", "side", "kind"))
    if method == "ASOF" and kind in ("", "INNER", "OUTER") and side in ("", "LEFT"):
        return None
    known = method in ("", "NATURAL") and (
        (kind in ("", "INNER", "CROSS", "SEMI", "ANTI") and not side)
        or (kind in ("", "OUTER") and side in ("LEFT", "RIGHT", "FULL"))
    )
    return None if known else " ".join(word for word in (method, side, kind, "JOIN") if word)


def _query(node: exp.Expr) -> str | None:
    return "a list of a subquery's rows (ARRAY)" if isinstance(node.parent, exp.Anonymous) else None


def _inner_statement(node: exp.Expr) -> str | None:
    """Of statements, EXPLAIN takes most, and nothing else any that is not a query."""
    if node.parent is None or isinstance(node.parent, syntax.Explain):
        return None
    words = type(node).__name__.removesuffix("Table").upper()
    return f"{_STATEMENTS.get(type(node), words)} within another statement"


def _comparison(node: exp.Expr) -> str | None:
    """Which of two comparisons comes first is not for the reader to guess."""
    alike = _ORDERINGS if isinstance(node, _ORDERINGS) else (exp.NullSafeEQ, exp.NullSafeNEQ)
    for operand in (node.this, node.expression):
        made = isinstance(operand, exp.Paren) and "start" not in operand.meta  # by the parser
        side = operand.this if made else operand
        if isinstance(side, alike) and not isinstance(side.expression, (exp.Any, exp.All)):
            return "a comparison of a comparison (write AND between them, or parentheses)"
    return None


def _quantified_comparison(node: exp.Expr) -> str | None:
    """ANY and ALL go with a comparison, on its right side, and take a query."""
    words = type(node).__name__.upper()
    comparison = node.parent
    known = isinstance(comparison, (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE))
    if not known or comparison is None or comparison.args.get("expression") is not node:
        return f"{words} anywhere but after a comparison"
    query = node.this
    while isinstance(query, exp.Paren | exp.Subquery):
        query = query.this
    return None if isinstance(query, exp.Query | exp.Values) else f"{words} of a list"


def _tuple(node: exp.Expr) -> str | None:
    around = node.parent
    at_home = isinstance(
        around, (exp.Values, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Distinct, syntax.Option)
    ) and not (isinstance(around, exp.Distinct) and isinstance(around.parent, exp.Anonymous))
    nothing = isinstance(around, exp.Group) and not node.expressions
    if isinstance(around, exp.Values) and not node.expressions:
        return "a row without values"
    return None if at_home or nothing or _is_compared(node) else "a row value"


def _is_compared(node: exp.Expr) -> bool:
    """Whether it is a side of a comparison, or a part of one."""
    around = node.parent
    while isinstance(around, (exp.Tuple, exp.Paren)):
        around = around.parent
    return isinstance(around, (*_COMPARISONS, exp.In, exp.Between))


def _call(node: exp.Expr) -> str | None:
    name = node.name.lower()
    if name == "row" and not _is_compared(node):
        return "a row value"
    if name in ("all", "any", "some"):
        return f"{name.upper()} of a list"
    from bamquery.function_catalog.missing_functions import why_missing  # noqa: PLC0415
    from bamquery.sql_frontend.functions.scalar_functions import FUNCTIONS  # noqa: PLC0415 (not before there is a call)
    from bamquery.sql_frontend.functions.window_functions import is_window_function  # noqa: PLC0415

    in_from = isinstance(node.parent, exp.Table)
    here = (FILE_FUNCTIONS, SYSTEM_FUNCTIONS) if in_from else (FUNCTIONS, SESSION_FUNCTIONS, SYSTEM_FUNCTIONS)
    if any(name in known for known in here) or is_aggregate(name) or is_window_function(name):
        return None
    why = why_missing(name, in_from=in_from)
    if why is None:
        return None
    return f"{name}() ({why})" if why else f"{name}()"


def _array(node: exp.Expr) -> str | None:
    return None if _is_option(node) or isinstance(node.parent, syntax.SetSetting) else "a list"


def _struct(node: exp.Expr) -> str | None:
    return None if _is_option(node) else "a struct"


def _named_argument(node: exp.Expr) -> str | None:
    return None if _is_option(node) else "a named argument"


def _is_option(node: exp.Expr) -> bool:
    """Whether it is an argument of a table function, or part of one, or of an option of COPY."""
    parent = node.parent
    while isinstance(parent, (exp.EQ, exp.PropertyEQ, exp.Struct)):
        parent = parent.parent
    return isinstance(parent, syntax.Option) or (
        isinstance(parent, exp.Anonymous) and isinstance(parent.parent, exp.Table)
    )


def _is_test(node: exp.Expr) -> str | None:
    return (
        None
        if isinstance(node.expression, (exp.Null, exp.Boolean))
        else "IS with anything but NULL, TRUE or FALSE"
    )


def _order(node: exp.Expr) -> str | None:
    call = node.parent
    scalar = isinstance(call, exp.Anonymous) and not is_aggregate(call.name)
    return "ORDER BY within a call of what is no aggregate" if scalar else None


def _window(node: exp.Expr) -> str | None:
    word = str(node.args.get("over") or "OVER").upper()
    return None if word == "OVER" else f"{word} before a window"


def _nulls(node: exp.Expr) -> str | None:
    words = "IGNORE NULLS" if isinstance(node, exp.IgnoreNulls) else "RESPECT NULLS"
    call = node.parent
    if isinstance(call, exp.Order):
        call = call.parent
    if not isinstance(call, exp.Anonymous):
        return f"{words} after the parentheses (write it within)"
    return None if is_windowed(call) else f"{words} without OVER"


def _drop(node: exp.Expr) -> str | None:
    inner = _inner_statement(node)
    if inner is not None:
        return inner
    return "DROP of several at once" if len(node.args["tables"]) > 1 else None


def _column_def(node: exp.Expr) -> str | None:
    at_home = isinstance(node.parent, syntax.AddColumn) or (
        isinstance(node.parent, exp.Schema) and isinstance(node.parent.parent, exp.Create)
    )
    return None if at_home else "a name with a type"


def _schema(node: exp.Expr) -> str | None:
    return None if isinstance(node.parent, (exp.Insert, exp.Create)) else "a list of columns"


_STATEMENTS: Final[Mapping[type[exp.Expr], str]] = MappingProxyType(
    {
        syntax.AlterTable: "ALTER",
        syntax.CopyTo: "COPY",
        syntax.CopyFrom: "COPY",
        syntax.SetSetting: "SET",
        syntax.SetVariable: "SET",
        syntax.ShowNamed: "SHOW",
        syntax.ShowSubject: "SHOW",
        syntax.ShowTables: "SHOW",
        syntax.SchemaStatement: "USE, or CREATE or DROP SCHEMA,",
    }
)

PLACES: Final[Mapping[type[exp.Expr], Callable[[exp.Expr], str | None]]] = MappingProxyType(
    {
        **dict.fromkeys((exp.Create, exp.Describe, exp.Drop, exp.Insert, *_STATEMENTS), _inner_statement),
        **dict.fromkeys((syntax.Optimize, syntax.Reset, syntax.Summarize, syntax.Vacuum), _inner_statement),
        **dict.fromkeys(_COMPARISONS, _comparison),
        exp.Join: _join,
        exp.Select: _query,
        exp.Any: _quantified_comparison,
        exp.All: _quantified_comparison,
        exp.Tuple: _tuple,
        exp.Anonymous: _call,
        exp.Array: _array,
        exp.Struct: _struct,
        exp.PropertyEQ: _named_argument,
        exp.Is: _is_test,
        exp.Order: _order,
        exp.Window: _window,
        exp.IgnoreNulls: _nulls,
        exp.RespectNulls: _nulls,
        exp.Drop: _drop,
        exp.Schema: _schema,
        exp.ColumnDef: _column_def,
    }
)
"""For each kind what it is called where it cannot be, None where it can."""
