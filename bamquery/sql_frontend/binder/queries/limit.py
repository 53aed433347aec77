"""LIMIT and OFFSET."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from sqlglot import exp

from bamquery.plan.expressions import Expression, Literal
from bamquery.plan.literals.conversion import convert
from bamquery.plan.literals.evaluation import fold_expression
from bamquery.plan.nodes import Limit, Plan
from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder
from bamquery.sql_frontend.binder.scope import Scope
from bamquery.sql_frontend.fault_collection import errors_at

_ONE_ROW: Final = Scope()


def row_count(query: exp.Expr, clause: str, sql: str) -> int | None:
    """The number that LIMIT or OFFSET of a query gives, None where there is none.

    Raises:
        SqlError: it is no constant, or no number of rows.
    """
    node = query.args.get(clause)
    if node is None:
        return None
    with errors_at(sql, node.expression):
        if node.find(exp.Column):
            raise ValueError(f"{clause.upper()} needs a constant")
    bound = ExpressionBinder(sql, _ONE_ROW, clause.upper()).bind(node.expression)
    with errors_at(sql, node.expression):
        return _count(bound, clause.upper())


def _count(expression: Expression, clause: str) -> int | None:
    """The number of rows that LIMIT or OFFSET gives, None for NULL."""
    constant = fold_expression(expression)
    if not isinstance(constant, Literal):
        raise ValueError(f"{clause} needs a constant")
    count: int | None = convert(constant.value, pa.int64()).as_py()
    if count is not None and count < 0:
        raise ValueError(f"{clause} cannot be negative")
    return count


def bind_limit(plan: Plan, limit: int | None, offset: int | None) -> Plan:
    """No more rows than LIMIT allows, and none that OFFSET passes over."""
    if limit is None and not offset:
        return plan
    return Limit(plan, limit, offset or 0)
