"""GROUP BY and DISTINCT to operators: which kind of grouping, in which order rows come, and grouping sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bamquery.engine.operators.aggregate.aggregate import Aggregate
from bamquery.engine.operators.aggregate.distinct_aggregate import (
    DistinctAggregate,
    drop_needless_distinct,
)
from bamquery.engine.operators.aggregate.distinct_on import DistinctOnPrefilter
from bamquery.engine.operators.aggregate.grouping_sets_collect import CollectGroupingSets
from bamquery.engine.operators.aggregate.grouping_sets_expand import SET_NUMBER, ExpandGroupingSets
from bamquery.engine.operators.aggregate.ordered_extremes import rewrite_ordered_extremes
from bamquery.engine.operators.aggregate.rollup import Rollup, can_rollup
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.sort.sort import Sort
from bamquery.plan import nodes
from bamquery.plan.expressions import AggregateCall, ColumnRef
from bamquery.plan.nodes import Plan


def lower_grouping(plan: nodes.Aggregate, lower: Callable[[Plan], Operator[Any]]) -> Operator[Any]:
    """The operator of a grouping, over those of its child."""
    child = plan.child
    calls = rewrite_ordered_extremes(drop_needless_distinct(plan.aggregates))
    kind = DistinctAggregate if any(call.distinct for call in calls) else Aggregate
    rows = _sort_for_groups(plan, child, lower) if isinstance(child, nodes.Sort) else lower(child)
    rows.take_all_rows()
    if plan.sets:
        return _lower_sets(plan, rows, calls, kind)
    rows.keep_encoded()
    return kind(rows, plan.keys, calls, plan.fields)


def _sort_for_groups(
    plan: nodes.Aggregate, child: nodes.Sort, lower: Callable[[Plan], Operator[Any]]
) -> Operator[Any]:
    """Sorted rows to be grouped; where only first ones are wanted (DISTINCT ON), few of them are sorted."""
    plain = all(
        call.function == "first" and not (call.order or call.distinct or call.filter is not None)
        for call in plan.aggregates
    )
    if plan.sets or not plan.keys or not plain or child.limit is not None or child.offset:
        return lower(child)
    order = [key for key in child.keys if key.expression not in plan.keys]  # others are alike in a group
    rows = lower(child.child)
    return Sort(DistinctOnPrefilter(rows, plan.keys, order), child.keys) if order else rows


def _lower_sets(
    plan: nodes.Aggregate,
    rows: Operator[Any],
    calls: Sequence[AggregateCall],
    kind: type[Aggregate[Any] | DistinctAggregate[Any]],
) -> Operator[Any]:
    """One grouping by the keys of all sets and the number of the set."""
    fields = plan.fields
    key_fields = fields[: len(plan.keys)]
    own_fields = (*key_fields, SET_NUMBER, *fields[len(plan.keys) : -1])
    if can_rollup(calls, len(plan.keys), plan.sets):
        rolled = Rollup(rows, plan.keys, calls, plan.sets, own_fields)
        return CollectGroupingSets(rolled, rows.fields, calls, plan.sets, fields)
    expanded = ExpandGroupingSets(rows, plan.keys, key_fields, plan.sets)
    keys = [
        ColumnRef(i, field.name, field.type)
        for i, field in enumerate(expanded.fields)
        if i >= len(rows.fields)
    ]
    return CollectGroupingSets(kind(expanded, keys, calls, own_fields), rows.fields, calls, plan.sets, fields)
