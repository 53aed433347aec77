"""Plans under a name, so that SQL can be written over a relation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from bamquery.plan.expressions import ColumnRef
from bamquery.plan.nodes import Filter, Plan, Project, Scan
from bamquery.plan.rewriting import PlanRewriter, conjunction, conjuncts
from bamquery.statement_context.deep_recursion import with_deep_recursion


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A source that is a plan; `inline_views` puts the plan in its place before anything runs.

    Attributes:
        name: as statements call it.
        plan: whose rows these are.
        is_inlined: whether the plan scans no views itself.
    """

    name: str
    plan: Plan
    is_inlined: bool = False

    @property
    def schema(self) -> pa.Schema:
        """The plan's columns."""
        return pa.schema([pa.field(field.name, field.type) for field in self.plan.fields])


def rename_columns(plan: Plan, names: Sequence[str]) -> Plan:
    """The plan with other names for its columns."""
    if [field.name for field in plan.fields] == list(names):
        return plan
    columns = tuple(ColumnRef(i, field.name, field.type) for i, field in enumerate(plan.fields))
    return Project(plan, columns, tuple(names))


def inline_views(plan: Plan) -> Plan:
    """The same plan without scans of views; what is named several times is one node."""

    def inline_node(node: Plan) -> Plan:
        return _inline_below(node, rewritten)

    rewritten = PlanRewriter(inline_node)
    try:
        return with_deep_recursion(lambda: rewritten(plan))
    finally:
        rewritten.forget()  # it knows itself, and would keep tables until a collection


def _inline_below(plan: Plan, inline: Callable[[Plan], Plan]) -> Plan:
    """The node over children without views; `inline_views` is for the plans of views."""
    match plan:
        case Scan(source=View(plan=inner) as view, columns=columns, predicates=predicates):
            if not view.is_inlined:
                inner = inline(inner)  # a view may be of views
            for predicate in predicates:
                inner = Filter(inner, predicate)
            if columns == tuple(range(len(inner.fields))):
                return inner
            fields = [inner.fields[column] for column in columns]
            references = (
                ColumnRef(c, field.name, field.type) for c, field in zip(columns, fields, strict=True)
            )
            return Project(inner, tuple(references), tuple(field.name for field in fields))
        case Filter(child=Filter(child=below, predicate=first), predicate=predicate):
            return Filter(below, conjunction([*conjuncts(first), predicate]))  # which make no tower
        case Project(child=child) if _changes_nothing(plan, child):
            return child
        case _:
            return plan


def _changes_nothing(project: Project, below: Plan) -> bool:
    """Whether these are the columns below as they are."""
    fields = below.fields
    return len(project.names) == len(fields) and all(
        isinstance(column, ColumnRef) and column.index == place and name == field.name
        for place, (column, name, field) in enumerate(
            zip(project.expressions, project.names, fields, strict=True)
        )
    )
