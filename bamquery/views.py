"""Plans under a name, so that SQL can be written over a relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from bamquery.plan.expressions import ColumnRef
from bamquery.plan.nodes import Filter, Plan, Project, Scan
from bamquery.plan.rewriting import children, with_children


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A source that is a plan; `inline` puts the plan in its place before anything runs."""

    name: str
    plan: Plan

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
        case Scan(source=View(plan=inner), columns=columns, predicates=predicates):
            inner = inline(inner)  # a view may be of views
            for predicate in predicates:
                inner = Filter(inner, predicate)
            fields = [inner.fields[column] for column in columns]
            references = (
                ColumnRef(c, field.name, field.type) for c, field in zip(columns, fields, strict=True)
            )
            return Project(inner, tuple(references), tuple(field.name for field in fields))
        case _:
            return with_children(plan, [inline(child) for child in children(plan)])
