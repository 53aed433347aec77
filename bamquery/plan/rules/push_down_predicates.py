"""Conditions move to where rows come from: into the scan, which reads other columns for survivors only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from bamquery.plan.expressions import (
    Call,
    Cast,
    ColumnRef,
    Expression,
    referenced_columns,
    transform,
    walk,
)
from bamquery.plan.nodes import Aggregate, Filter, Join, Plan, Project, Scan, Sort, Union, Window
from bamquery.plan.rewriting import conjunction, conjuncts, renumber, substitute, transform_plan
from bamquery.plan.rules.gather_conditions import gather_conditions
from bamquery.plan.rules.merge_projects import merge_projections
from bamquery.statement_context.cancellation import check_cancelled

_MOST_VARIANTS: Final = 4
"""So many different conditions go into a node that several others read; more stay above it."""
_MOST_PARTS: Final = 64
"""A condition that would grow to more parts than these, once it reads what columns are made of, stays above:
columns that are made of columns, each twice, would double it with every projection, and of a chain of queries
with a condition each, every one would come to be as long as all that is below it."""


def push_down_predicates(plan: Plan) -> Plan:
    """Split each filter's condition and move each part below all that does not depend on it.

    So are the conditions of joins, where a side's rows that fail them have no partner and are not wanted.
    """
    return transform_plan(gather_conditions(plan), _PredicatePushdown().push_all)


class _PredicatePushdown:
    """What became of nodes with a condition: a node that several others read takes it once."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, Expression], tuple[Plan, Plan]] = {}
        self._variants: Counter[int] = Counter()

    def push_all(self, plan: Plan) -> Plan:
        """The node with every condition as far down as it goes, in the order they were written."""
        match plan:
            case Join(condition=condition) if condition is not None:
                return self._push_condition(plan, condition)
            case Filter(child=child, predicate=predicate):
                kept: list[Expression] = []
                for part in conjuncts(predicate):
                    pushed = self._push(child, part)
                    if pushed is None:
                        kept.append(part)
                    else:
                        child = pushed
                return Filter(child, conjunction(kept)) if kept else child
            case _:
                return plan

    def _push(self, plan: Plan, predicate: Expression) -> Plan | None:
        """The plan with the predicate in it, or None where it has to stay above."""
        match plan:
            case Scan() if not referenced_columns(predicate):  # nothing that a scan could choose rows by
                return None
            case Scan(columns=columns, predicates=predicates):
                schema = plan.source.schema

                def to_source_column(e: Expression) -> Expression:
                    if not isinstance(e, ColumnRef):
                        return e
                    return replace(e, index=columns[e.index], name=schema.field(columns[e.index]).name)

                return replace(plan, predicates=(*predicates, transform(predicate, to_source_column)))
            case Filter(child=child):
                below = self._push(child, predicate)
                if below is not None:
                    return replace(plan, child=below)
                return replace(plan, predicate=conjunction([*conjuncts(plan.predicate), predicate]))
            case Project():
                # A condition stood between it and one below: this condition, and the next, pass both at once.
                above = merge_projections(plan)
                assert isinstance(above, Project)
                child, expressions = above.child, above.expressions
                if _is_too_long_below(predicate, expressions):
                    return None
                return replace(above, child=self._push_below(child, substitute(predicate, expressions)))
            case Sort(child=child, limit=None, offset=0):
                return replace(plan, child=self._push_below(child, predicate))
            case Aggregate(child=child, keys=keys, sets=()):
                # Without keys there is a row even where no row comes in.
                columns_read = referenced_columns(predicate)
                if not columns_read or any(index >= len(keys) for index in columns_read):
                    return None
                if _is_too_long_below(predicate, keys):
                    return None
                return replace(plan, child=self._push_below(child, substitute(predicate, keys)))
            case Union(inputs=inputs):
                return Union(tuple(self._push_below(child, predicate) for child in inputs))
            case Join():
                return self._push_into_join(plan, predicate)
            case Window(child=child, partition=partition):
                # Whole partitions come or go, so that the others keep their rows.
                keys_read = {key.index for key in partition if isinstance(key, ColumnRef)}
                columns_read = referenced_columns(predicate)
                if not columns_read or not columns_read <= keys_read:
                    return None
                return replace(plan, child=self._push_below(child, predicate))
            case _:
                return None

    def _push_below(self, child: Plan, predicate: Expression) -> Plan:
        found = self._made.get((id(child), predicate))
        if found is None:
            check_cancelled()
            self._variants[id(child)] += 1
            pushed = None if self._variants[id(child)] > _MOST_VARIANTS else self._push(child, predicate)
            made = Filter(child, predicate) if pushed is None else pushed
            found = self._made[id(child), predicate] = (child, made)
        return found[1]

    def _push_into_join(self, plan: Join, predicate: Expression) -> Plan | None:
        """A condition on the pairs: on the side that it is about, if that side's rows come as they are."""
        width = len(plan.left.fields)
        read = referenced_columns(predicate)
        if plan.kind not in ("right", "full") and all(index < width for index in read):
            return replace(plan, left=self._push_below(plan.left, predicate))
        if plan.kind in ("inner", "right") and read and all(index >= width for index in read):
            return replace(plan, right=self._push_below(plan.right, _right_side_condition(predicate, width)))
        if plan.kind == "inner":
            parts = [] if plan.condition is None else conjuncts(plan.condition)
            return replace(plan, condition=conjunction([*parts, predicate]))
        return None

    def _push_condition(self, plan: Join, condition: Expression) -> Plan:
        """The parts of a join's own condition that are about one side whose unmatched rows are not wanted."""
        width = len(plan.left.fields)
        left, right = plan.left, plan.right
        kept: list[Expression] = []
        for part in conjuncts(condition):
            read = referenced_columns(part)
            if read and plan.kind in ("inner", "right", "semi") and all(index < width for index in read):
                left = self._push_below(left, part)
            elif (
                read
                and plan.kind in ("inner", "left", "semi", "anti", "single")
                and all(index >= width for index in read)
            ):
                right = self._push_below(right, _right_side_condition(part, width))
            else:
                kept.append(part)
        if left is plan.left and right is plan.right:
            return plan
        return Join(left, right, plan.kind, conjunction(kept) if kept else None)


def _is_too_long_below(predicate: Expression, columns: Sequence[Expression]) -> bool:
    """Whether a condition grows, by too many calls and the like, once columns are what they are made of."""
    made: dict[int, int] = {}
    own = grown = 0
    for part in walk(predicate):
        own += 1
        if isinstance(part, ColumnRef) and isinstance(columns[part.index], Call | Cast):
            if part.index not in made:
                made[part.index] = sum(1 for _ in islice(walk(columns[part.index]), _MOST_PARTS))
            grown += made[part.index]
    return grown > 0 and own + grown > _MOST_PARTS


def _right_side_condition(predicate: Expression, width: int) -> Expression:
    """A condition on pairs that reads the right side only, over that side's columns."""
    return renumber(predicate, {index: index - width for index in referenced_columns(predicate)})
