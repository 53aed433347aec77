"""Nodes that do nothing are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bamquery.plan.expressions import Expression, Literal
from bamquery.plan.nodes import Aggregate, Filter, Limit, Plan, Project, Scan, Sort, Window
from bamquery.plan.rewriting import columns_of, conjunction, conjuncts


def remove_trivial(plan: Plan) -> Plan:
    """Drop projections that change nothing, conditions that are always true and limits that do not limit.

    A condition that is never true becomes a limit of no rows, so that nothing is read.
    """
    return _remove(plan, at_root=True)


def _remove(plan: Plan, *, at_root: bool) -> Plan:
    match plan:
        case Filter() | Project() | Aggregate() | Sort() | Limit() | Window():
            # Names matter in the result only; above a node that keeps them, it decides.
            keeps_names = isinstance(plan, Filter | Sort | Limit | Window)
            plan = replace(plan, child=_remove(plan.child, at_root=at_root and keeps_names))
    match plan:
        case Project(child=child) if _changes_nothing(plan, at_root=at_root):
            return child
        case Scan(predicates=predicates) if any(isinstance(p, Literal) for p in predicates):
            return _filter(replace(plan, predicates=()), predicates)
        case Filter(child=child, predicate=predicate):
            return _filter(child, conjuncts(predicate))
        case Limit(child=child, count=None, offset=0):
            return child
        case _:
            return plan


def _changes_nothing(plan: Project, *, at_root: bool) -> bool:
    below = columns_of(plan.child)
    if len(below) != len(plan.expressions):
        return False
    straight = all(
        getattr(expression, "index", None) == index for index, expression in enumerate(plan.expressions)
    )
    return straight and (not at_root or plan.names == tuple(column.name for column in below))


def _filter(child: Plan, predicates: Sequence[Expression]) -> Plan:
    undecided = [predicate for predicate in predicates if not isinstance(predicate, Literal)]
    if any(isinstance(p, Literal) and p.value.as_py() is not True for p in predicates):  # false or null
        return Limit(child, 0)
    return Filter(child, conjunction(undecided)) if undecided else child
