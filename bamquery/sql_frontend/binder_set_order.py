"""ORDER BY on the rows of a query that is put together of others."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from bamquery.naming import suggestion
from bamquery.plan.expressions import ColumnRef, Expression
from bamquery.plan.nodes import Plan, Sort, SortKey
from bamquery.plan.rewriting import columns_of
from bamquery.plan.subqueries import has_subquery
from bamquery.sql_frontend.binder_expressions import ExpressionBinder
from bamquery.sql_frontend.binder_subqueries import BindInner
from bamquery.sql_frontend.coercion import decode
from bamquery.sql_frontend.environment import Environment
from bamquery.sql_frontend.failures import each, placed
from bamquery.sql_frontend.scope import ALIAS_TABLE, Scope
from bamquery.sql_frontend.select_output import Item, Order, Output, ordered
from bamquery.sql_frontend.select_terms import check_no_constant, item_at, ordinal
from bamquery.sql_frontend.set_branches import Branch, Rows, named_position, written_position


def ordered_rows(
    rows: Rows, order: exp.Order | None, sql: str, environment: Environment, bind_inner: BindInner
) -> Plan:
    """The rows sorted: by positions, by names, by what a SELECT has written, by expressions of columns.

    A name is looked for among the columns of each SELECT in turn, the first one's first. An expression that
    some SELECT selects means that column; in any other the columns are those of the result.

    Raises:
        SqlError: a term means nothing in the result, or several of its columns.
    """
    if order is None:
        return rows.plan
    columns = columns_of(rows.plan)
    scope = Scope.of(ALIAS_TABLE, rows.plan.fields)
    binder = ExpressionBinder(sql, scope, "ORDER BY", environment=environment, bind_inner=bind_inner)

    def orders(term: exp.Ordered) -> list[Order]:
        with placed(sql, term.this):
            found = _columns_meant(term.this, columns, rows.branches)
        expressions: Sequence[Expression] = found or [binder.bind(term.this)]
        descending, nulls_first = bool(term.args.get("desc")), bool(term.args.get("nulls_first"))
        return [Order(SortKey(decode(value), descending, nulls_first), term.this) for value in expressions]

    terms = [term for group in each(orders, order.expressions, sql) for term in group]
    if not any(has_subquery(term.key.expression) for term in terms):
        return Sort(rows.plan, tuple(term.key for term in terms))
    return ordered(rows.plan, Output([Item(column, column.name, None) for column in columns], None, terms))


def _columns_meant(
    node: exp.Expr, columns: Sequence[ColumnRef], branches: Sequence[Branch]
) -> Sequence[ColumnRef]:
    """What is meant by ALL, a position, a name or a selected expression; nothing for any other expression."""
    if isinstance(node, exp.Var) and node.this == "ALL":
        return columns
    position = ordinal(node)
    if position is not None:
        return [item_at(columns, position, "ORDER BY")]
    check_no_constant(node)
    place = named_position(node.unnest(), branches)
    if place is None:
        place = written_position(node, branches)
    if place is not None:
        return [columns[place]]
    column = node.unnest()
    if isinstance(column, exp.Column):
        hint = suggestion(column.name, [known.name for known in columns])
        table = f'"{column.table}".' if column.table else ""
        raise ValueError(f'there is no column {table}"{column.name}" in the result.{hint}')
    return []
