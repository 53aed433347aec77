"""ORDER BY on the rows of a query that is put together of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from bamquery.plan.expressions import ColumnRef, Expression
from bamquery.plan.nodes import Plan, Sort, SortKey
from bamquery.plan.rewriting import columns_of
from bamquery.plan.subqueries.expressions import has_subquery
from bamquery.sql_frontend.binder.environment import Environment
from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder
from bamquery.sql_frontend.binder.expressions.subqueries import BindInner
from bamquery.sql_frontend.binder.queries.select_output import Item, Order, SelectOutput, apply_order
from bamquery.sql_frontend.binder.queries.select_terms import check_no_constant, item_at, ordinal
from bamquery.sql_frontend.binder.queries.set_operation_branches import (
    Branch,
    Rows,
    any_unwritten,
    named_position,
    written_position,
)
from bamquery.sql_frontend.binder.scope import ALIAS_TABLE, Scope
from bamquery.sql_frontend.fault_collection import apply_to_each, errors_at
from bamquery.sql_frontend.functions.coercion import decode
from bamquery.text.identifiers import fold_case, suggestion

_ROWS: Final = "unnamed_subquery"
"""What the rows of a set operation are called as a table."""


def ordered_rows(
    rows: Rows, query: exp.Query, sql: str, environment: Environment, bind_inner: BindInner
) -> Rows:
    """The rows sorted: by positions, by names, by what a SELECT has written, by expressions of columns.

    A name is looked for among the columns of each SELECT in turn, the first one's first. What some SELECT
    selects means that column. Where a term is neither, all are expressions of the result's columns, and the
    rows are as those of a SELECT from the set operation.

    Raises:
        SqlError: a term means nothing in the result, or several of its columns.
    """
    order = query.args.get("order")
    if order is None:
        return rows
    columns = columns_of(rows.plan)
    scope = Scope.from_fields(_ROWS, rows.plan.fields)
    binder = ExpressionBinder(sql, scope, "ORDER BY", environment=environment, bind_inner=bind_inner)

    def resolve_term(term: exp.Ordered) -> Sequence[ColumnRef]:
        with errors_at(sql, term.this):
            return _columns_meant(term.this, columns, rows)

    over_result = rows.combined and any_unwritten(
        [term.this for term in order.expressions if not _is_fixed(term.this)], query
    )
    found: Sequence[Sequence[Expression]] = (
        () if over_result else apply_to_each(resolve_term, order.expressions, sql)
    )
    if not found or not all(found):
        found = apply_to_each(
            lambda term: _bind_over_result(term.this, columns, binder), order.expressions, sql
        )
    terms = [
        Order(SortKey(decode(value), bool(term.args.get("desc")), bool(term.args.get("nulls_first"))), term)
        for term, values in zip(order.expressions, found, strict=True)
        for value in values
    ]
    plan: Plan = Sort(rows.plan, tuple(term.key for term in terms))
    if any(has_subquery(term.key.expression) for term in terms):
        output = SelectOutput([Item(column, column.name, None) for column in columns], None, terms)
        plan = apply_order(rows.plan, output)
    if not over_result:
        return rows.with_plan(plan)
    names = [column.name for column in scope.columns]
    return Rows(plan, [Branch(names, scope.columns, scope, range(len(names)))], [scope])


def _columns_meant(node: exp.Expr, columns: Sequence[ColumnRef], rows: Rows) -> Sequence[ColumnRef]:
    """What is meant by ALL, a position, a name or what is selected; nothing for any other expression."""
    fixed = _resolve_position(node, columns)
    if fixed:
        return fixed
    place = named_position(node.unnest(), rows.branches)
    if place is None:
        place = written_position(node, rows)
    if place is not None:
        return [columns[place]]
    column = node.unnest()
    if isinstance(column, exp.Column):
        hint = suggestion(column.name, [known.name for known in columns])
        table = f'"{column.table}".' if column.table else ""
        raise ValueError(f'there is no column {table}"{column.name}" in the result.{hint}')
    if rows.combined:
        raise ValueError(
            f"{node.sql(dialect='duckdb')} is written in a SELECT, but there with other columns than those "
            "of these names in the first SELECT that has them: write its number"
        )
    return []


def _bind_over_result(
    node: exp.Expr, columns: Sequence[ColumnRef], binder: ExpressionBinder
) -> Sequence[Expression]:
    """A term over the columns of the result, as all are where one of them is an expression of these."""
    with errors_at(binder.sql, node):
        fixed = _resolve_position(node, columns)
    name = node.unnest()
    if isinstance(name, exp.Column) and fold_case(name.table) == ALIAS_TABLE:
        node = exp.column(name.this)
    return fixed or [binder.bind(node)]


def _is_fixed(node: exp.Expr) -> bool:
    """Whether it is ALL, a position or another constant."""
    inner = node.unnest()
    number = inner.this if isinstance(inner, exp.Neg) else inner
    is_all = isinstance(inner, exp.Var) and inner.this == "ALL"
    return is_all or isinstance(number.unnest(), exp.Literal | exp.Boolean | exp.Null)


def _resolve_position(node: exp.Expr, columns: Sequence[ColumnRef]) -> Sequence[ColumnRef]:
    """What ALL or a position means; nothing for any other term."""
    if isinstance(node, exp.Var) and node.this == "ALL":
        return columns
    position = ordinal(node)
    if position is not None:
        return [item_at(columns, position, "ORDER BY")]
    check_no_constant(node)
    return []
