"""How many rows a plan is likely to give: enough to tell the large side of a join from the small one."""

from __future__ import annotations

from typing import Final, Protocol, runtime_checkable

from bamquery.plan.expressions import Call, Expression
from bamquery.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Limit,
    Plan,
    Recursion,
    Scan,
    SingleRow,
    Sort,
    Union,
    Values,
)
from bamquery.plan.rewriting import conjuncts

UNKNOWN_ROWS: Final = 1_000_000.0
_EQUALITY: Final = 0.05
_CONDITION: Final = 0.3
_STEPS: Final = 10.0
_GROUPS: Final = 0.1
"""Share of the rows that are the first of their group."""


@runtime_checkable
class CountedSource(Protocol):
    """A source that knows how many rows it has."""

    @property
    def rows(self) -> int | None:
        """Rows; None where that is not known before they are read."""
        ...


def estimated_rows(plan: Plan) -> float:
    """A guess of the number of rows, at least 1 but for plans that give none for certain."""
    match plan:
        case Scan(source=source, predicates=predicates):
            counted = source.rows if isinstance(source, CountedSource) else None
            return _kept(UNKNOWN_ROWS if counted is None else float(counted), list(predicates))
        case SingleRow():
            return 1.0
        case Values(batch=batch):
            return float(batch.num_rows)
        case Filter(child=child, predicate=predicate):
            return _kept(estimated_rows(child), conjuncts(predicate))
        case Aggregate(child=child, keys=keys):
            return max(estimated_rows(child) * _GROUPS, 1.0) if keys else 1.0
        case Sort(child=child, limit=limit) | Limit(child=child, count=limit):
            rows = estimated_rows(child)
            return rows if limit is None else min(rows, float(limit))
        case Recursion(first=first):
            return _STEPS * estimated_rows(first)
        case Union(inputs=inputs):
            return sum(map(estimated_rows, inputs))
        case Join():
            return _joined(plan)
        case _:  # nodes that give about as many rows as they take
            return estimated_rows(plan.child)


def _joined(plan: Join) -> float:
    left = estimated_rows(plan.left)
    if plan.kind in ("mark", "single", "asof", "asof_left"):
        return left
    if plan.kind in ("semi", "anti"):
        return max(left * _CONDITION, 1.0)
    right = estimated_rows(plan.right)
    return joined_rows(left, right, [] if plan.condition is None else conjuncts(plan.condition))


def joined_rows(left: float, right: float, conditions: list[Expression]) -> float:
    """Pairs of an inner join: one partner for each row of the larger side where keys are compared."""
    keyed = [part for part in conditions if is_equality(part)]
    others = [part for part in conditions if not is_equality(part)]
    return _kept(max(left, right) if keyed else left * right, others)


def _kept(rows: float, predicates: list[Expression]) -> float:
    for predicate in predicates:
        rows *= _EQUALITY if is_equality(predicate) else _CONDITION
    return max(rows, 1.0)


def is_equality(predicate: Expression) -> bool:
    """Whether it says that two values are equal."""
    return isinstance(predicate, Call) and predicate.function in ("equal", "is_not_distinct_from")
