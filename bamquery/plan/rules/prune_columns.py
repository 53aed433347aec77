"""Columns that nothing above reads are not computed, and not read from storage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bamquery.plan.expressions import AggregateCall, Expression, referenced_columns
from bamquery.plan.nodes import (
    Aggregate,
    Filter,
    Limit,
    Plan,
    Project,
    Sample,
    Scan,
    SingleRow,
    Sort,
    Values,
)
from bamquery.plan.rewriting import map_arguments, renumber


def prune_columns(plan: Plan) -> Plan:
    """Keep the root's columns, and of every node below what those need."""
    pruned, positions = _prune(plan, frozenset(range(len(plan.fields))))
    assert all(old == new for old, new in positions.items())
    return pruned


def _prune(plan: Plan, needed: frozenset[int]) -> tuple[Plan, dict[int, int]]:
    """The plan with at least the columns needed, and where each of those is now."""
    match plan:
        case Scan(columns=columns):
            kept = sorted(needed)
            return replace(plan, columns=tuple(columns[i] for i in kept)), _positions(kept)
        case SingleRow():
            return plan, {}
        case Values(batch=batch):
            # A batch without columns has no number of rows either.
            kept = sorted(needed) or [0]
            return (
                (plan, _positions(kept))
                if len(kept) == batch.num_columns
                else (
                    Values(batch.select(kept)),
                    _positions(kept),
                )
            )
        case Filter(child=child, predicate=predicate):
            below, positions = _prune(child, needed | referenced_columns(predicate))
            return replace(plan, child=below, predicate=renumber(predicate, positions)), positions
        case Sort(child=child, keys=keys):
            below, positions = _prune(child, needed | referenced_columns(*(k.expression for k in keys)))
            moved = tuple(replace(k, expression=renumber(k.expression, positions)) for k in keys)
            return replace(plan, child=below, keys=moved), positions
        case Limit(child=child) | Sample(child=child):
            below, positions = _prune(child, needed)
            return replace(plan, child=below), positions
        case Project():
            return _prune_project(plan, needed)
        case Aggregate():
            return _prune_aggregate(plan, needed)


def _prune_project(plan: Project, needed: frozenset[int]) -> tuple[Plan, dict[int, int]]:
    if not needed:  # only the number of rows matters
        return _prune(plan.child, frozenset())
    kept = sorted(needed)
    expressions = [plan.expressions[i] for i in kept]
    below, positions = _prune(plan.child, referenced_columns(*expressions))
    moved = tuple(renumber(expression, positions) for expression in expressions)
    return Project(below, moved, tuple(plan.names[i] for i in kept)), _positions(kept)


def _prune_aggregate(plan: Aggregate, needed: frozenset[int]) -> tuple[Plan, dict[int, int]]:
    """All keys stay, since they make the groups; calls that are not read go."""
    count = len(plan.keys)
    kept = [*range(count), *sorted(i for i in needed if i >= count)]
    if not kept and plan.aggregates:  # one row, whatever comes in: some call may as well stand for it
        kept = [0]
    calls = [plan.aggregates[i - count] for i in kept if i >= count]
    below, positions = _prune(plan.child, referenced_columns(*_read_by(plan.keys, calls)))
    keys = tuple(renumber(key, positions) for key in plan.keys)
    moved = tuple(map_arguments(call, lambda e: renumber(e, positions)) for call in calls)
    return Aggregate(below, keys, moved, tuple(plan.names[i] for i in kept)), _positions(kept)


def _read_by(keys: Iterable[Expression], calls: Iterable[AggregateCall]) -> list[Expression]:
    filters = [call.filter for call in calls if call.filter is not None]
    return [*keys, *(argument for call in calls for argument in call.arguments), *filters]


def _positions(kept: list[int]) -> dict[int, int]:
    return {old: new for new, old in enumerate(kept)}
