"""LIMIT below projections, and into sorts, which then keep no more rows than are wanted."""

from __future__ import annotations

from dataclasses import replace

from bamquery.plan.nodes import Limit, Plan, Project, Sort
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
        case _:
            return plan


def _merged(outer: Limit, inner: Limit) -> Limit:
    """Rows `outer` of rows `inner`."""
    left = None if inner.count is None else max(inner.count - outer.offset, 0)
    counts = [count for count in (left, outer.count) if count is not None]
    return Limit(inner.child, min(counts, default=None), inner.offset + outer.offset)
