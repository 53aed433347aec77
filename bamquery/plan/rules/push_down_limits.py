"""LIMIT below projections, and into sorts, which then keep no more rows than are wanted."""

from __future__ import annotations

from dataclasses import replace

from bamquery.plan.nodes import Limit, Plan, Project, Sort, Union
from bamquery.plan.rewriting import transform_plan


def push_down_limits(plan: Plan) -> Plan:
    """Merge limits, move them below projections and tell sorts about them."""
    return transform_plan(plan, lambda node: _push(node) if isinstance(node, Limit) else node)


def _push(plan: Limit) -> Plan:
    match plan.child:
        case Limit() as below:
            return _push(_merged(plan, below))
        case Project() as below:
            return replace(below, child=_push(replace(plan, child=below.child)))
        case Sort(limit=None, offset=0) as below if plan.count is not None:
            return replace(below, limit=plan.count, offset=plan.offset)
        case Union() as below if plan.count is not None:
            wanted = plan.count + plan.offset
            return replace(plan, child=Union(tuple(_at_most(child, wanted) for child in below.inputs)))
        case _:
            return plan


def _at_most(plan: Plan, count: int) -> Plan:
    """The plan, limited unless it is already."""
    below = plan
    while isinstance(below, Project):
        below = below.child
    if isinstance(below, Limit | Sort) and _rows_of(below) <= count:
        return plan
    return _push(Limit(plan, count))


def _rows_of(plan: Limit | Sort) -> float:
    limit = plan.count if isinstance(plan, Limit) else plan.limit
    return float("inf") if limit is None else limit


def _merged(outer: Limit, inner: Limit) -> Limit:
    """Rows `outer` of rows `inner`."""
    left = None if inner.count is None else max(inner.count - outer.offset, 0)
    counts = [count for count in (left, outer.count) if count is not None]
    return Limit(inner.child, min(counts, default=None), inner.offset + outer.offset)
