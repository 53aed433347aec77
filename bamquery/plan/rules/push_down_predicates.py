"""Conditions move to where rows come from: into the scan, which reads other columns for survivors only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import compress, islice
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
from bamquery.plan.rewriting import (
    PlanRewriter,
    children,
    conjunction,
    conjuncts,
    is_too_large_to_copy,
    nodes_of,
    renumber,
    substitute,
    with_children,
)
from bamquery.plan.rules.gather_conditions import gather_conditions
from bamquery.plan.rules.merge_projects import merge_projections
from bamquery.statement_context.cancellation import check_cancelled

_MOST_VARIANTS: Final = 4
"""So many different conditions go into a node that several others read; more stay above it."""
_MOST_NODES: Final = 64
"""A condition that would grow to more nodes than these, once it reads what columns are made of, stays above:
columns that are made of columns, each twice, would double it with every projection, and of a chain of queries
with a condition each, every one would come to be as long as all that is below it."""


def push_down_predicates(plan: Plan) -> Plan:
    """Split each filter's condition and move each conjunct below all that does not depend on it.

    So are the conditions of joins, where a side's rows that fail them have no partner and are not wanted.
    """
    plan = gather_conditions(plan)
    return _PredicatePushdown(plan)(plan)


class _PredicatePushdown(PlanRewriter):
    """What became of nodes with a condition: a node that several others read takes it once.

    One that is too large to be copied takes none: in a chain of queries that each read the one before twice,
    once with a condition, each would be copied as often as there are queries above it.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._readers = Counter(id(child) for node in nodes_of(plan) for child in children(node))
        self._closed: dict[int, Plan] = {}
        """Rebuilt nodes that take no condition of one reader, by their numbers."""
        self._pushed: dict[tuple[int, _Conditions], tuple[Plan, Plan]] = {}
        self._variants: Counter[int] = Counter()

    def __call__(self, plan: Plan) -> Plan:
        """Rebuilt bottom-up."""
        found = super().__call__(plan)
        if self._readers[id(plan)] > 1 and is_too_large_to_copy(found):
            self._closed[id(found)] = found
        return found

    def rewrite(self, plan: Plan) -> Plan:
        """The node with every condition as far down as it goes, in the order they were written."""
        match plan:
            case Join(condition=condition) if condition is not None:
                return self._push_condition(plan, condition)
            case Filter(child=child, predicate=predicate):
                return _add_filter(*self._push(child, _Conditions(tuple(conjuncts(predicate)))))
            case _:
                return plan

    def _push(self, plan: Plan, going: _Conditions) -> tuple[Plan, _Conditions]:
        """The plan with conditions in it, and those that have to stay above."""
        if id(plan) in self._closed:
            return plan, going
        match plan:
            case Scan(columns=columns, predicates=predicates):
                going, kept = going.split(bool)  # without columns there is nothing to choose rows by
                schema = plan.source.schema

                def to_source_column(e: Expression) -> Expression:
                    if not isinstance(e, ColumnRef):
                        return e
                    return replace(e, index=columns[e.index], name=schema.field(columns[e.index]).name)

                there = (transform(conjunct, to_source_column) for conjunct in going.conjuncts)
                return (replace(plan, predicates=(*predicates, *there)) if going.conjuncts else plan), kept
            case Filter(child=child):
                below, kept = self._push(child, going)
                merged = [*conjuncts(plan.predicate), *kept.conjuncts]
                return Filter(below, conjunction(merged) if kept.conjuncts else plan.predicate), _NONE
            case Project():
                # A condition stood between it and one below: this condition, and the next, pass both at once.
                above = merge_projections(plan)
                assert isinstance(above, Project)
                return self._push_below_expressions(above, above.expressions, going)
            case Sort(child=child, limit=None, offset=0):
                return replace(plan, child=self._push_below(child, going)), _NONE
            case Aggregate(keys=keys, sets=()):
                # Without keys there is a row even where no row comes in.
                going, kept = going.split(lambda read: bool(read) and all(i < len(keys) for i in read))
                made, long = self._push_below_expressions(plan, keys, going)
                return made, kept.and_also(long)
            case Union(inputs=inputs):
                return Union(tuple(self._push_below(child, going) for child in inputs)), _NONE
            case Join():
                return self._push_into_join(plan, going)
            case Window(child=child, partition=partition):
                # Whole partitions come or go, so that the others keep their rows.
                keys_read = {key.index for key in partition if isinstance(key, ColumnRef)}
                going, kept = going.split(lambda read: bool(read) and read <= keys_read)
                return with_children(plan, [self._push_below(child, going)]), kept
            case _:
                return plan, going

    def _push_below(self, child: Plan, going: _Conditions) -> Plan:
        if not going.conjuncts:
            return child
        found = self._pushed.get((id(child), going))
        if found is None:
            check_cancelled()
            self._variants[id(child)] += 1
            many = self._variants[id(child)] > _MOST_VARIANTS
            made = _add_filter(child, going) if many else _add_filter(*self._push(child, going))
            found = self._pushed[id(child), going] = (child, made)
        return found[1]

    def _push_below_expressions(
        self, plan: Project | Aggregate, expressions: Sequence[Expression], going: _Conditions
    ) -> tuple[Plan, _Conditions]:
        """Conditions on columns that are made of others, over those."""
        long = {conjunct for conjunct in going.conjuncts if _is_too_long_below(conjunct, expressions)}
        below = tuple(
            substitute(conjunct, expressions) for conjunct in going.conjuncts if conjunct not in long
        )
        kept = (
            _Conditions(tuple(conjunct for conjunct in going.conjuncts if conjunct in long))
            if long
            else _NONE
        )
        return with_children(plan, [self._push_below(plan.child, _Conditions(below))]), kept

    def _push_into_join(self, plan: Join, going: _Conditions) -> tuple[Plan, _Conditions]:
        """Conditions on the pairs: on the side that they are about, if that side's rows come as they are."""
        width = len(plan.left.fields)
        left = right = _NONE
        if plan.kind not in ("right", "full"):
            left, going = going.split_before(width)
        if plan.kind in ("inner", "right"):
            right, going = going.split_from(width)
        plan = replace(
            plan,
            left=self._push_below(plan.left, left),
            right=self._push_below(plan.right, right.on_right_side(width)),
        )
        if plan.kind != "inner" or not going.conjuncts:
            return plan, going
        own = [] if plan.condition is None else conjuncts(plan.condition)
        return replace(plan, condition=conjunction([*own, *going.conjuncts])), _NONE

    def _push_condition(self, plan: Join, condition: Expression) -> Plan:
        """A join's own conjuncts that are about one side whose unmatched rows are not wanted."""
        width = len(plan.left.fields)
        going = _Conditions(tuple(conjuncts(condition)))
        left = right = _NONE
        if plan.kind in ("inner", "right", "semi"):
            left, going = going.split_before(width, unread=False)
        if plan.kind in ("inner", "left", "semi", "anti", "single"):
            right, going = going.split_from(width)
        if not left.conjuncts and not right.conjuncts:
            return plan
        return Join(
            self._push_below(plan.left, left),
            self._push_below(plan.right, right.on_right_side(width)),
            plan.kind,
            conjunction(going.conjuncts) if going.conjuncts else None,
        )


class _Conditions:
    """Conditions that go the same way, and the columns that each of them reads.

    What all pass, they pass as one: on the way down through many joins nobody looks into each of many.
    """

    def __init__(
        self, members: tuple[Expression, ...], reads: Sequence[frozenset[int]] | None = None
    ) -> None:
        self.conjuncts = members
        self._reads = [referenced_columns(conjunct) for conjunct in members] if reads is None else reads

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Conditions) and (self is other or self.conjuncts == other.conjuncts)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.conjuncts)

    def split(self, passes: Callable[[frozenset[int]], bool]) -> tuple[_Conditions, _Conditions]:
        """Those whose columns pass, and the others."""
        return self._split([passes(read) for read in self._reads])

    def split_before(self, width: int, *, unread: bool = True) -> tuple[_Conditions, _Conditions]:
        """Those whose columns are all before that place, `unread` those that read none, and the others."""
        return self._split([last < width and (unread or last >= 0) for last in self._last_reads])

    def split_from(self, width: int) -> tuple[_Conditions, _Conditions]:
        """Those that read columns from that place on only, and the others."""
        return self._split([first >= width for first in self._first_reads])

    @cached_property
    def _first_reads(self) -> list[int]:
        return [min(read, default=-1) for read in self._reads]

    @cached_property
    def _last_reads(self) -> list[int]:
        return [max(read, default=-1) for read in self._reads]

    def _split(self, passes: Sequence[bool]) -> tuple[_Conditions, _Conditions]:
        if all(passes):
            return self, _NONE
        return self._chosen(passes), self._chosen([not each for each in passes])

    def _chosen(self, chosen: Sequence[bool]) -> _Conditions:
        return _Conditions(tuple(compress(self.conjuncts, chosen)), list(compress(self._reads, chosen)))

    def and_also(self, others: _Conditions) -> _Conditions:
        """Both, these first."""
        if not others.conjuncts:
            return self
        return _Conditions((*self.conjuncts, *others.conjuncts), [*self._reads, *others._reads])

    def on_right_side(self, width: int) -> _Conditions:
        """Conditions on pairs that read the right side only, over that side's columns."""
        if not self.conjuncts:
            return self
        moved = {index: index - width for read in self._reads for index in read}
        return _Conditions(tuple(renumber(conjunct, moved) for conjunct in self.conjuncts))


_NONE: Final = _Conditions(())


def _add_filter(plan: Plan, conditions: _Conditions) -> Plan:
    return Filter(plan, conjunction(conditions.conjuncts)) if conditions.conjuncts else plan


def _is_too_long_below(predicate: Expression, columns: Sequence[Expression]) -> bool:
    """Whether a condition grows, by too many calls and the like, once columns are what they are made of."""
    made: dict[int, int] = {}
    own = grown = 0
    for node in walk(predicate):
        own += 1
        if isinstance(node, ColumnRef) and isinstance(columns[node.index], Call | Cast):
            if node.index not in made:
                made[node.index] = sum(1 for _ in islice(walk(columns[node.index]), _MOST_NODES))
            grown += made[node.index]
    return grown > 0 and own + grown > _MOST_NODES
