"""Queries within expressions: one value, EXISTS, IN, ANY and ALL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from bamquery.data_types.type_groups import value_type
from bamquery.plan.expressions import ColumnRef, Expression, Literal
from bamquery.plan.nodes import Plan, Project
from bamquery.plan.rewriting import columns_of
from bamquery.plan.subqueries.expressions import SubqueryCall, SubqueryKind
from bamquery.sql_frontend.binder.environment import Environment
from bamquery.sql_frontend.binder.expressions.row_values import compared_with_columns, row_fields
from bamquery.sql_frontend.fault_collection import errors_at
from bamquery.sql_frontend.functions import operators
from bamquery.sql_frontend.functions.coercion import decode
from bamquery.sql_frontend.syntax.calls import query_of_in
from bamquery.sql_frontend.syntax.positions import line_and_column, start

if TYPE_CHECKING:
    from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder

BindInner = Callable[[exp.Expr, Environment], Plan]

_OPPOSITES = {
    "equal": "not_equal",
    "not_equal": "equal",
    "less": "greater_equal",
    "less_equal": "greater",
    "greater": "less_equal",
    "greater_equal": "less",
}


def bind_scalar(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """A query that stands for the value of its only row."""
    plan, outside = _bind_query(binder, node)
    _check_columns(binder, plan, node, 1)
    return _call(binder, node, plan, "scalar", outside, kind=plan.fields[0].type)


def bind_exists(binder: ExpressionBinder, node: exp.Exists) -> Expression:
    """EXISTS."""
    plan, outside = _bind_query(binder, node.this)
    return _call(binder, node.this, plan, "exists", outside)


def bind_in(binder: ExpressionBinder, node: exp.In) -> Expression:
    """IN with a query, which is = ANY."""
    query = query_of_in(node)
    assert query is not None
    return _bind_quantified(binder, node, "equal", node.this, query)


def bind_quantified(binder: ExpressionBinder, function: str, node: exp.Expr) -> Expression:
    """A comparison with ANY or ALL of a query; ALL is what no row contradicts."""
    quantifier = node.expression
    query = quantifier.this
    if isinstance(quantifier, exp.Any):
        return _bind_quantified(binder, node, function, node.this, query)
    return operators.negation(_bind_quantified(binder, node, _OPPOSITES[function], node.this, query))


def _bind_quantified(
    binder: ExpressionBinder, node: exp.Expr, function: str, value: exp.Expr, query: exp.Expr
) -> Expression:
    fields = row_fields(value)
    with errors_at(binder.sql, value):
        if fields is not None and len(fields) == 1:
            raise ValueError("a row of one value cannot be compared with a query: write the value alone")
    operands = [decode(bound) for bound in binder.bind_all([value] if fields is None else fields)]
    plan, outside = _bind_query(binder, query)
    _check_columns(binder, plan, query, len(operands))
    compared = [operand for operand in operands if not isinstance(operand, Literal)]
    stand_ins = [
        operand
        if isinstance(operand, Literal)
        else ColumnRef(len(operands) + compared.index(operand), "operand", operand.type)
        for operand in operands
    ]
    with errors_at(binder.sql, node):
        test = compared_with_columns(function, stand_ins, columns_of(plan))
    return _call(binder, query, plan, "any", outside, test=test, compared=compared)


def _bind_query(binder: ExpressionBinder, node: exp.Expr) -> tuple[Plan, Sequence[Expression]]:
    """The query's plan, and what it takes from outside."""
    while isinstance(node, exp.Paren):
        node = node.this
    with errors_at(binder.sql, node):
        if binder.bind_inner is None:
            raise ValueError(f"a subquery cannot stand in {binder.clause}")
    environment, correlation = binder.environment.for_subquery(binder)
    plan = binder.bind_inner(node, environment)
    return _decode_columns(plan), correlation.columns


def _decode_columns(plan: Plan) -> Plan:
    """The plan with values in place of dictionaries' codes."""
    columns = columns_of(plan)
    values = tuple(decode(column) for column in columns)
    if values == columns:
        return plan
    return Project(plan, values, tuple(column.name for column in columns))


def _check_columns(binder: ExpressionBinder, plan: Plan, node: exp.Expr, count: int) -> None:
    with errors_at(binder.sql, node):
        if len(plan.fields) != count:
            wanted = "one column" if count == 1 else f"{count} columns"
            raise ValueError(f"a subquery needs {wanted} here, not {len(plan.fields)}")


def _call(
    binder: ExpressionBinder,
    node: exp.Expr,
    plan: Plan,
    subquery: SubqueryKind,
    outside: Sequence[Expression],
    *,
    kind: pa.DataType | None = None,
    test: Expression | None = None,
    compared: Sequence[Expression] = (),
) -> Expression:
    offset = start(node)
    line, column = (0, 0) if offset is None else line_and_column(binder.sql, offset)
    result = pa.bool_() if kind is None else value_type(kind)
    return SubqueryCall(
        "subquery",
        (*outside, *compared),
        result,
        plan,
        subquery,
        test,
        len(outside),
        line,
        column,
    )
