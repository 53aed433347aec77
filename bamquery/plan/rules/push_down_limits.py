"""LIMIT below projections, and into sorts, which then keep no more rows than are wanted."""

from __future__ import annotations

from dataclasses import replace

from bamquery.plan.nodes import Limit, Plan, Project, Sort, Union
from bamquery.plan.rewriting import transform_plan, with_fields


def push_down_limits(plan: Plan) -> Plan:
    """Merge limits, move them below projections and tell sorts about them."""
    pushing = _LimitPushdown()
    return transform_plan(plan, lambda node: pushing.push_down(node) if isinstance(node, Limit) else node)


class _LimitPushdown:
    """What became of the inputs of unions: one that several of them have is limited once."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, int], tuple[Plan, Plan]] = {}

    def push_down(self, plan: Limit) -> Plan:
        """The limit as far down as it goes."""
        match plan.child:
            case Limit() as below:
                return self.push_down(_combine_limits(plan, below))
            case Project() as below:
                return replace(below, child=self.push_down(replace(plan, child=below.child)))
            case Sort(limit=None, offset=0) as below if plan.count is not None:
                return replace(below, limit=plan.count, offset=plan.offset)
            case Union() as below if plan.count is not None:
                wanted = plan.count + plan.offset
                inputs = tuple(self._limit_rows(child, wanted) for child in below.inputs)
                return with_fields(plan, child=with_fields(below, inputs=inputs))
            case _:
                return plan

    def _limit_rows(self, plan: Plan, count: int) -> Plan:
        """The plan, limited unless it is already."""
        found = self._made.get((id(plan), count))
        if found is None:
            below = plan
            while isinstance(below, Project):
                below = below.child
            limited = isinstance(below, Limit | Sort) and _rows_of(below) <= count
            made = plan if limited else self.push_down(Limit(plan, count))
            found = self._made[id(plan), count] = (plan, made)
        return found[1]


def _rows_of(plan: Limit | Sort) -> float:
    limit = plan.count if isinstance(plan, Limit) else plan.limit
    return float("inf") if limit is None else limit


def _combine_limits(outer: Limit, inner: Limit) -> Limit:
    """Rows `outer` of rows `inner`."""
    left = None if inner.count is None else max(inner.count - outer.offset, 0)
    counts = [count for count in (left, outer.count) if count is not None]
    return Limit(inner.child, min(counts, default=None), inner.offset + outer.offset)
