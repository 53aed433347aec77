"""WITH RECURSIVE to operators: the step is lowered anew each time, since operators run once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bamquery.data_types import type_groups as types
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.recursion import column_recursion, row_recursion
from bamquery.engine.operators.recursion.column_recursion import FEWEST_ROWS, ColumnRecursion
from bamquery.engine.operators.recursion.column_steps import column_step
from bamquery.engine.operators.recursion.packed_rows import MOST_COLUMNS
from bamquery.engine.operators.recursion.recursion import Recursion
from bamquery.engine.operators.recursion.row_recursion import RowRecursion
from bamquery.engine.operators.recursion.row_steps import row_step
from bamquery.engine.operators.recursion.small_recursion import SmallRecursion
from bamquery.engine.sources.scan_sources import RecursiveTableSource
from bamquery.plan import nodes
from bamquery.plan.expressions import Call, Expression
from bamquery.plan.nodes import Plan
from bamquery.plan.rewriting import columns_of, transform_plan


def lower_recursion(plan: nodes.Recursion, lower: Callable[[Plan], Operator[Any]]) -> Operator[Any]:
    """The operator of a recursive query, whose scans share the rows of its last step."""
    rows: RecursiveTableSource[Any] = RecursiveTableSource(plan.table.name, plan.table.schema)

    def bind_table(node: Plan) -> Plan:
        if isinstance(node, nodes.Scan) and node.source is plan.table:
            return replace(node, source=rows)
        return node

    step = transform_plan(plan.step, bind_table)
    keys = tuple(map(_key, columns_of(plan))) if plan.distinct else ()
    small = _small_forms(step, rows, plan, lower)
    return Recursion(lower(plan.first), lambda: lower(step), rows, keys, plan.fields, small=small)


def _small_forms(
    step: Plan,
    source: RecursiveTableSource[Any],
    plan: nodes.Recursion,
    lower: Callable[[Plan], Operator[Any]],
) -> Callable[[ExecutionContext[Any], int], SmallRecursion[Any] | None]:
    """What computes the steps without operators, by how many rows there are."""
    by_row, by_column = row_step(step, source), column_step(step, source)
    if plan.distinct and len(plan.fields) > MOST_COLUMNS:
        by_column = None

    def choose(context: ExecutionContext[Any], rows: int) -> SmallRecursion[Any] | None:
        if by_column is not None and FEWEST_ROWS <= rows <= column_recursion.most_rows(
            distinct=plan.distinct
        ):
            return ColumnRecursion(context, by_column, plan.fields, distinct=plan.distinct)
        if by_row is not None and rows <= row_recursion.most_rows(distinct=plan.distinct):
            return RowRecursion(context, by_row, plan.fields, lower, distinct=plan.distinct)
        return None

    return choose


def _key(column: Expression) -> Expression:
    if types.is_interval(column.type):
        return Call("interval_order", (column,), types.HUGEINT)
    return column
