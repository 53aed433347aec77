"""Queries within expressions: what the binder makes of them, until `unnesting` turns them into joins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from bamquery.plan.expressions import Call, Expression, walk
from bamquery.plan.nodes import Plan

SubqueryKind: TypeAlias = Literal["scalar", "exists", "any"]


@dataclass(frozen=True)
class SubqueryCall(Call):
    """A query as a value. No rule and no device ever sees one.

    - scalar: the one column of the one row; null where there is no row.
    - exists: whether there is a row.
    - any: whether `test` is true for some row; null where it is not true but null for some.

    Attributes:
        arguments: first what the query takes from outside, `correlated` in number: its plan's column -1 - k
            is the k-th of them. Then what `test` compares.
        plan: the query.
        test: over the plan's columns, and after those the arguments that are compared.
        line, column: where it stands in the statement; 0 where that is not known.
    """

    plan: Plan = field(hash=False)
    kind: SubqueryKind = "scalar"
    test: Expression | None = None
    correlated: int = 0
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)


def has_subquery(expression: Expression) -> bool:
    """Whether there is a query somewhere in the expression."""
    return any(isinstance(node, SubqueryCall) for node in walk(expression))
