"""Calls bound: functions, aggregates with what stands around them, windows, GROUPING()."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from bamquery.function_catalog.missing_functions import REFUSED
from bamquery.function_catalog.session import SESSION_FUNCTIONS
from bamquery.function_catalog.table_functions import SYSTEM_FUNCTIONS
from bamquery.plan.expressions import Expression
from bamquery.sql_frontend.binder.expressions.syntax_forms import Bind
from bamquery.sql_frontend.fault_collection import errors_at
from bamquery.sql_frontend.functions import scalar_functions as functions
from bamquery.sql_frontend.functions.aggregates import AGGREGATES, is_aggregate
from bamquery.sql_frontend.functions.scalar_functions import FUNCTIONS
from bamquery.sql_frontend.functions.window_functions import WINDOW_FUNCTIONS, is_window_function
from bamquery.sql_frontend.syntax.calls import function_of
from bamquery.sql_frontend.system_names import SESSION_VALUE
from bamquery.text.identifiers import suggestion

if TYPE_CHECKING:
    from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder


def _bind_function(binder: ExpressionBinder, node: exp.Anonymous) -> Expression:
    name = node.name
    if is_aggregate(name):
        return _bind_aggregate(binder, node)
    if name.lower() in ("grouping", "grouping_id"):
        return _bind_grouping(binder, node)
    if SESSION_VALUE in node.meta:
        known: Expression = node.meta[SESSION_VALUE]
        return known
    if name.lower() not in FUNCTIONS:
        with errors_at(binder.sql, node):
            if name.lower() in SESSION_FUNCTIONS:
                raise ValueError(f"{name.lower()}() cannot stand in {binder.clause}")
            if name.lower() in SYSTEM_FUNCTIONS:
                raise ValueError(f"{name.lower()}() is a table function: it stands in FROM")
            if name.lower() in REFUSED:
                raise ValueError(f"{name.lower()}() is not supported: {REFUSED[name.lower()]}")
            if is_window_function(name):
                raise ValueError(f"{name.lower()}() needs OVER (...)")
            if name.lower() == "columns":
                raise ValueError("COLUMNS() can stand in SELECT and WHERE only")
            hint = suggestion(name, [*FUNCTIONS, *AGGREGATES, *WINDOW_FUNCTIONS, *SESSION_FUNCTIONS])
            raise ValueError(f"there is no function {name}().{hint}")
    arguments = binder.bind_all(node.expressions)
    with errors_at(binder.sql, node):
        return functions.call(name, arguments)


def _bind_grouping(binder: ExpressionBinder, node: exp.Anonymous) -> Expression:
    with errors_at(binder.sql, node):
        if binder.aggregates is None:
            raise ValueError(f"{binder.clause} cannot contain GROUPING(), which needs groups")
    return binder.aggregates.grouping(node, binder.bind_all(node.expressions))


def _bind_window(binder: ExpressionBinder, node: exp.Window) -> Expression:
    with errors_at(binder.sql, node):
        if binder.windows is None:
            raise ValueError(f"a call over a window (OVER) cannot stand in {binder.clause}")
    inner = binder.for_clause("a call over a window", binder.aggregates)
    return binder.windows.bind(node, inner.bind)


def _bind_modified(binder: ExpressionBinder, node: exp.Filter | exp.WithinGroup) -> Expression:
    """An aggregate with something around it."""
    function = function_of(node)
    word = "FILTER" if isinstance(node, exp.Filter) else "WITHIN GROUP"
    with errors_at(binder.sql, node):
        within_group = function is not None and isinstance(function.parent, exp.WithinGroup)
        if function is None or not (is_aggregate(function.name) or within_group):
            raise ValueError(f"{word} belongs to an aggregate function")
    return _bind_aggregate(binder, node)


def _bind_aggregate(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    function = function_of(node)
    assert function is not None
    name = function.name.lower()
    with errors_at(binder.sql, node):
        if binder.aggregates is None:
            raise ValueError(f"{name}() is an aggregate, which {binder.clause} cannot contain")
    inner = binder.for_clause(f"the arguments of {name}()")
    return binder.aggregates.bind(node, inner.bind)


CALLS: Final[Mapping[type[exp.Expr], Bind]] = MappingProxyType(
    {
        exp.Anonymous: _bind_function,
        exp.Filter: _bind_modified,
        exp.WithinGroup: _bind_modified,
        exp.Window: _bind_window,
    }
)
