"""Queries to logical plans: SELECT, VALUES, set operations, what is in parentheses, and WITH around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from bamquery.errors import Reason, UnsupportedError
from bamquery.plan.nodes import Plan
from bamquery.plan.subqueries.unnesting import UnnestingError, unnest_subqueries
from bamquery.sql_frontend.binder.catalog import Catalog
from bamquery.sql_frontend.binder.environment import NOTHING_AROUND, Environment
from bamquery.sql_frontend.binder.expressions.subqueries import BindInner
from bamquery.sql_frontend.binder.queries.limit import bind_limit, row_count
from bamquery.sql_frontend.binder.queries.select_binder import SelectBinder
from bamquery.sql_frontend.binder.queries.set_operation_branches import Branch, Rows
from bamquery.sql_frontend.binder.queries.set_operation_order import ordered_rows
from bamquery.sql_frontend.binder.queries.set_operations import bind_set_operation
from bamquery.sql_frontend.binder.scope import Scope
from bamquery.sql_frontend.binder.sources.from_clause import bind_values
from bamquery.sql_frontend.binder.sources.with_queries import bind_with
from bamquery.sql_frontend.fault_collection import FaultCollector, errors_at
from bamquery.statement_context.cancellation import check_cancelled

_OF_VALUES: Final = "valueslist"
"""What VALUES is called that has no alias."""


def bind_query(node: exp.Expr, sql: str, catalog: Catalog, environment: Environment = NOTHING_AROUND) -> Plan:
    """The plan of a SELECT, of a set operation, of VALUES, or of any of them in parentheses.

    Queries within expressions are joins in it; `environment` is what the query sees of the text around it.

    Raises:
        SqlError: with everything that is wrong, in the order of the text.
    """
    return _bind(node, sql, catalog, environment).plan


def _bind(node: exp.Expr, sql: str, catalog: Catalog, environment: Environment) -> Rows:
    check_cancelled()
    try:
        rows = _bind_nested(node, sql, catalog, environment)
        return rows.with_plan(unnest_subqueries(rows.plan))
    except UnnestingError as error:
        words, call = f"{error} is not supported", error.call
        place = Reason(words, call.line, call.column) if call.line else Reason(words)
        raise UnsupportedError(place, sql) from error


def _bind_nested(node: exp.Expr, sql: str, catalog: Catalog, environment: Environment) -> Rows:
    def bind(inner: exp.Expr, around: Environment = environment) -> Plan:
        return bind_query(inner, sql, catalog, around)

    if isinstance(node, exp.Subquery):
        _check_no_alias(node, sql)
        around = bind_with(node.args.get("with_"), sql, environment, bind)
        _take_order(node)
        return _bind_with_own_order(node, sql, around, bind, lambda: _bind(node.this, sql, catalog, around))
    if isinstance(node, exp.Values):
        _check_no_alias(node, sql)
        plan = bind_values(node, sql, catalog.fold_constants)
        scope = Scope.from_fields(_OF_VALUES, plan.fields)
        names = [field.name for field in plan.fields]
        return Rows(plan, [Branch(names, scope.columns, scope, range(len(names)))], [scope])
    if isinstance(node, exp.Table):  # (t) for (FROM t)
        star = exp.Select(expressions=[exp.Star()], from_=exp.From(this=node))
        return _bind(star, sql, catalog, environment)
    if isinstance(node, exp.SetOperation):
        around = bind_with(node.args.get("with_"), sql, environment, bind)

        def rows() -> Rows:
            return bind_set_operation(node, sql, lambda inner: _bind(inner, sql, catalog, around))

        return _bind_with_own_order(node, sql, around, bind, rows)
    assert isinstance(node, exp.Select)
    return SelectBinder(node, sql, catalog, environment, bind).bind()


def _take_order(node: exp.Subquery) -> None:
    """Let ORDER BY behind a SELECT in parentheses be its own, where it has none: it may name all it could."""
    inner = node.this
    while isinstance(inner, exp.Subquery) and not any(v for k, v in inner.args.items() if k != "this"):
        inner = inner.this
    if not isinstance(inner, exp.Select) or any(
        inner.args.get(clause) for clause in ("order", "limit", "offset")
    ):
        return
    distinct = inner.args.get("distinct")
    if distinct is None or distinct.args.get("on") is None:
        inner.set("order", node.args.get("order"))
        node.set("order", None)


def _bind_with_own_order(
    node: exp.Query, sql: str, environment: Environment, bind_inner: BindInner, bind: Callable[[], Rows]
) -> Rows:
    """The rows of a query that is put together of others, under its own ORDER BY, LIMIT and OFFSET."""
    faults = FaultCollector(sql)
    limit = offset = None
    rows: Rows | None = None
    with faults.collect():
        rows = bind()
        rows = ordered_rows(rows, node, sql, environment, bind_inner)
    with faults.collect():
        limit = row_count(node, "limit", sql)
    with faults.collect():
        offset = row_count(node, "offset", sql)
    faults.check()
    assert rows is not None
    return rows.with_plan(bind_limit(rows.plan, limit, offset))


def _check_no_alias(node: exp.Expr, sql: str) -> None:
    alias = node.args.get("alias")
    with errors_at(sql, alias):
        if alias is not None:
            raise ValueError("an alias here would name nothing")
