"""WITH RECURSIVE to operators: the step is lowered anew each time, since operators run once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bamquery.data_types import type_groups as types
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.recursion.recursion import Recursion
from bamquery.engine.operators.recursion.row_steps import row_step
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
    small = row_step(step, rows)
    by_row = None if small is None else (small, lower)
    return Recursion(lower(plan.first), lambda: lower(step), rows, keys, plan.fields, by_row=by_row)


def _key(column: Expression) -> Expression:
    if types.is_interval(column.type):
        return Call("interval_order", (column,), types.HUGEINT)
    return column
