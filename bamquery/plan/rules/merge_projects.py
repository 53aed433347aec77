"""A projection of a projection is one projection; keys and arguments are computed where they are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from bamquery.plan.expressions import ColumnRef, Expression, Literal, walk
from bamquery.plan.nodes import Aggregate, Plan, Project
from bamquery.plan.rewriting import map_expressions, substitute, transform_plan


def merge_projects(plan: Plan) -> Plan:
    """Put a projection's expressions into the node above, unless something would be computed twice."""
    return transform_plan(plan, merge_projections)


def merge_projections(plan: Plan) -> Plan:
    """The node with the expressions of projections below it, unless something would be computed twice."""
    match plan:
        case Project(child=Project() as below, expressions=expressions) if _reads_each_once(
            expressions, below
        ):
            above = map_expressions(plan, lambda e: substitute(e, below.expressions))
            return merge_projections(_replace_child(above, below.child))
        case Aggregate(child=Project() as below) if _reads_each_once(_read_by(plan), below):
            above = map_expressions(plan, lambda e: substitute(e, below.expressions))
            return merge_projections(_replace_child(above, below.child))
        case _:
            return plan


def _replace_child(plan: Plan, child: Plan) -> Plan:
    assert isinstance(plan, Project | Aggregate)
    return replace(plan, child=child)


def _read_by(plan: Aggregate) -> list[Expression]:
    return [*plan.keys, *(expression for call in plan.aggregates for expression in call.inputs)]


def _reads_each_once(expressions: Sequence[Expression], below: Project) -> bool:
    """Whether each expression of `below` that costs anything is read at most once."""
    reads = Counter(e.index for root in expressions for e in walk(root) if isinstance(e, ColumnRef))
    return all(
        isinstance(below.expressions[index], ColumnRef | Literal) or count == 1
        for index, count in reads.items()
    )
