"""Plans under a name, so that SQL can be written over a relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from bamquery.plan.expressions import ColumnRef
from bamquery.plan.nodes import Filter, Plan, Project, Scan
from bamquery.plan.rewriting import children, conjunction, conjuncts, with_children


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A source that is a plan; `inline` puts the plan in its place before anything runs.

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


def renamed(plan: Plan, names: Sequence[str]) -> Plan:
    """The plan with other names for its columns."""
    if [field.name for field in plan.fields] == list(names):
        return plan
    columns = tuple(ColumnRef(i, field.name, field.type) for i, field in enumerate(plan.fields))
    return Project(plan, columns, tuple(names))


def inline(plan: Plan) -> Plan:
    """The same plan without scans of views."""
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
        case Filter(child=child, predicate=predicate):
            below = inline(child)
            if isinstance(below, Filter):  # conditions upon conditions make no tower
                return Filter(below.child, conjunction([*conjuncts(below.predicate), predicate]))
            return with_children(plan, [below])
        case Project(child=child):
            below = inline(child)
            return below if _changes_nothing(plan, below) else with_children(plan, [below])
        case _:
            return with_children(plan, [inline(child) for child in children(plan)])


def _changes_nothing(project: Project, below: Plan) -> bool:
    """Whether these are the columns below as they are."""
    fields = below.fields
    return len(project.names) == len(fields) and all(
        isinstance(column, ColumnRef) and column.index == place and name == field.name
        for place, (column, name, field) in enumerate(
            zip(project.expressions, project.names, fields, strict=True)
        )
    )
