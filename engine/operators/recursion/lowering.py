"""WITH RECURSIVE to operators: the step is lowered anew each time, since operators run once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bamquery.data_types import type_groups as types
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.recursion.by_column.packed_rows import MOST_COLUMNS
from bamquery.engine.operators.recursion.by_column.recursion import (
    ColumnRecursion,
    fewest_rows,
)
from bamquery.engine.operators.recursion.by_column.steps import column_step
from bamquery.engine.operators.recursion.by_row.recursion import (
    MOST_BESIDE_COLUMNS,
    RowRecursion,
    most_rows,
)
from bamquery.engine.operators.recursion.by_row.steps import row_step
from bamquery.engine.operators.recursion.recursion import Recursion, SmallForms
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
) -> SmallForms[Any]:
    """What computes the steps without operators, by how many rows there are."""
    by_row, by_column = row_step(step, source), column_step(step, source)
    if plan.distinct and len(plan.fields) > MOST_COLUMNS:
        by_column = None
    distinct = plan.distinct
    most = most_rows(distinct=distinct)
    fewest = most + 1
    if by_column is not None:
        most = min(most, MOST_BESIDE_COLUMNS)
        fewest = min(most + 1, fewest_rows(by_column, distinct=distinct))

    def choose(context: ExecutionContext[Any], rows: int, before: str | None) -> SmallRecursion[Any] | None:
        if by_row is not None and before is None and rows < fewest:
            return RowRecursion(context, by_row, plan.fields, lower, most, distinct=distinct)
        if by_column is not None and before != ColumnRecursion.form:
            return ColumnRecursion(context, by_column, plan.fields, lower, distinct=distinct)
        return None

    return choose


def _key(column: Expression) -> Expression:
    if types.is_interval(column.type):
        return Call("interval_order", (column,), types.HUGEINT)
    return column
