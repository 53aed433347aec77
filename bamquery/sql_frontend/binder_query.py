"""Queries to logical plans: SELECT, VALUES, set operations, what is in parentheses, and WITH around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from bamquery.errors import Reason, UnsupportedError
from bamquery.plan.nodes import Plan
from bamquery.plan.unnesting import UnnestingError, unnested
from bamquery.sql_frontend.binder_limit import limited, row_count
from bamquery.sql_frontend.binder_select import SelectBinder
from bamquery.sql_frontend.binder_set_operations import bind_set_operation, ordered_output
from bamquery.sql_frontend.binder_sources import bind_values
from bamquery.sql_frontend.binder_with import bind_with
from bamquery.sql_frontend.catalog import Catalog
from bamquery.sql_frontend.environment import NOTHING_AROUND, Environment
from bamquery.sql_frontend.failures import Faults, placed


def bind_query(node: exp.Expr, sql: str, catalog: Catalog, environment: Environment = NOTHING_AROUND) -> Plan:
    """The plan of a SELECT, of a set operation, of VALUES, or of any of them in parentheses.

    Queries within expressions are joins in it; `environment` is what the query sees of the text around it.

    Raises:
        SqlError: with everything that is wrong, in the order of the text.
    """
    try:
        return unnested(_bind_nested(node, sql, catalog, environment))
    except UnnestingError as error:
        words, call = f"{error} is not supported", error.call
        place = Reason(words, call.line, call.column) if call.line else Reason(words)
        raise UnsupportedError(place, sql) from error


def _bind_nested(node: exp.Expr, sql: str, catalog: Catalog, environment: Environment) -> Plan:
    def bind(inner: exp.Expr, around: Environment = environment) -> Plan:
        return bind_query(inner, sql, catalog, around)

    if isinstance(node, exp.Subquery):
        _check_no_alias(node, sql)
        around = bind_with(node.args.get("with_"), sql, environment, bind)
        return _arranged(node, sql, lambda: (bind(node.this, around), []))
    if isinstance(node, exp.Values):
        _check_no_alias(node, sql)
        return bind_values(node, sql)
    if isinstance(node, exp.Table):  # (t) for (FROM t)
        return bind(exp.Select(expressions=[exp.Star()], from_=exp.From(this=node)))
    if isinstance(node, exp.SetOperation):
        around = bind_with(node.args.get("with_"), sql, environment, bind)
        return _arranged(node, sql, lambda: bind_set_operation(node, sql, lambda inner: bind(inner, around)))
    assert isinstance(node, exp.Select)
    return SelectBinder(node, sql, catalog, environment, bind).bind()


def _arranged(node: exp.Query, sql: str, rows: Callable[[], tuple[Plan, Sequence[Sequence[str]]]]) -> Plan:
    """The rows of a query that is put together of others, under its own ORDER BY, LIMIT and OFFSET.

    `rows` gives them with names that ORDER BY may use beside those of the columns.
    """
    faults = Faults(sql)
    limit = offset = None
    plan: Plan | None = None
    with faults.collected():
        plan, other_names = rows()
        plan = ordered_output(plan, node.args.get("order"), sql, other_names)
    with faults.collected():
        limit = row_count(node, "limit", sql)
    with faults.collected():
        offset = row_count(node, "offset", sql)
    faults.check()
    assert plan is not None
    return limited(plan, limit, offset)


def _check_no_alias(node: exp.Expr, sql: str) -> None:
    alias = node.args.get("alias")
    with placed(sql, alias):
        if alias is not None:
            raise ValueError("an alias here would name nothing")
