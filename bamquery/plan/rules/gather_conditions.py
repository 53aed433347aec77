"""Conditions of a chain of queries come together at the lowest of them, before all of them move on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from bamquery.plan.expressions import ColumnRef, Expression, walk
from bamquery.plan.nodes import Aggregate, Filter, Join, Plan, Project, Sort, Window
from bamquery.plan.rewriting import children, conjunction, conjuncts, nodes_of, with_children
from bamquery.statement_context.cancellation import check_cancelled

_Columns = Mapping[int, ColumnRef | None]
"""What each column that rows pass with is below; None where it is the same there."""


def gather_conditions(plan: Plan) -> Plan:
    """Move conditions into the next filter below, where only whole rows and groups come and go between both.

    So each goes down with those of all queries around it at once, not by itself through everything below.
    Only columns that are the same below are looked at: nothing is rewritten.
    """
    return _Gathering(plan).gather(plan)


@dataclass
class _Carried:
    """Conditions on their way down, the last ones of the text first, and the columns that they read."""

    conjuncts: list[Expression]
    columns: set[ColumnRef]

    def add(self, added: Sequence[Expression], passed: Sequence[_Columns]) -> list[Expression]:
        """Put those of a filter before the others, for the way to the next; what has to stay is given back.

        What reads no column stays: whether a row is there at all may change below.
        """
        kept = [] if _all_pass(self.columns, passed) else self._split(passed)
        read = [(conjunct, _columns_of(conjunct)) for conjunct in added]
        going = [columns != set() and _all_pass(columns, passed) for _, columns in read]
        self.conjuncts += [
            conjunct for (conjunct, _), goes in reversed(list(zip(read, going, strict=True))) if goes
        ]
        self.columns.update(*(columns for (_, columns), goes in zip(read, going, strict=True) if goes))
        return [*(conjunct for (conjunct, _), goes in zip(read, going, strict=True) if not goes), *kept]

    def _split(self, passed: Sequence[_Columns]) -> list[Expression]:
        """Let go of those that do not pass."""
        read = [(conjunct, _columns_of(conjunct)) for conjunct in self.conjuncts]
        self.conjuncts = [conjunct for conjunct, columns in read if _all_pass(columns, passed)]
        self.columns = {column for conjunct in self.conjuncts for column in _columns_of(conjunct)}
        return [conjunct for conjunct, columns in reversed(read) if not _all_pass(columns, passed)]


class _Gathering:
    def __init__(self, plan: Plan) -> None:
        readers: dict[int, int] = {}
        for node in nodes_of(plan):
            for child in children(node):
                readers[id(child)] = readers.get(id(child), 0) + 1
        self._shared = {number for number, count in readers.items() if count > 1}
        self._made: dict[int, Plan] = {}

    def gather(self, plan: Plan) -> Plan:
        found = self._made.get(id(plan))
        if found is None:
            check_cancelled()
            found = self._made[id(plan)] = self._rebuild(plan)
        return found

    def _rebuild(self, plan: Plan) -> Plan:
        if not isinstance(plan, Filter):
            return with_children(plan, [self.gather(child) for child in children(plan)])
        chain, tail = self._chain(plan)
        filters = [place for place, node in enumerate(chain) if isinstance(node, Filter)]
        nodes: list[Plan] = []
        carried = _Carried([], set())
        for place, following in pairwise(filters):
            between = chain[place + 1 : following]
            kept = carried.add(
                _filter_conjuncts(chain[place]), [_passing_columns(node) or {} for node in between]
            )
            nodes += [*([Filter(tail, conjunction(kept))] if kept else []), *between]
        last = [*_filter_conjuncts(chain[filters[-1]]), *reversed(carried.conjuncts)]
        nodes += [Filter(tail, conjunction(last)), *chain[filters[-1] + 1 :]]
        child = self.gather(tail)
        for node in reversed(nodes):
            child = with_children(node, [child, *map(self.gather, children(node)[1:])])
        return child

    def _chain(self, plan: Plan) -> tuple[list[Plan], Plan]:
        """A filter, the nodes that conditions may pass below it and further filters; and what is below."""
        chain = [plan]
        below, *_ = children(plan)
        while id(below) not in self._shared and (
            isinstance(below, Filter) or _passing_columns(below) is not None
        ):
            chain.append(below)
            below, *_ = children(below)
        return chain, below


def _columns_of(conjunct: Expression) -> set[ColumnRef]:
    return {node for node in walk(conjunct) if isinstance(node, ColumnRef)}


def _filter_conjuncts(plan: Plan) -> Sequence[Expression]:
    assert isinstance(plan, Filter)
    return conjuncts(plan.predicate)


def _all_pass(columns: Set[ColumnRef], passed: Sequence[_Columns]) -> bool:
    """Whether columns come through nodes as they are."""
    return all(
        column.index in known and known[column.index] in (None, column)
        for known in passed
        for column in columns
    )


def _passing_columns(node: Plan) -> _Columns | None:
    """The columns by which rows come or go as one, groups, partitions or a row's partners as wholes.

    None for other nodes. Conditions pass to the first of the nodes below.
    """
    match node:
        case Project(expressions=expressions):
            return {place: e for place, e in enumerate(expressions) if isinstance(e, ColumnRef)}
        case Aggregate(keys=keys, sets=()):
            return {place: key for place, key in enumerate(keys) if isinstance(key, ColumnRef)}
        case Sort(limit=None, offset=0):
            return dict.fromkeys(range(len(node.fields)))
        case Join(left=left, kind=kind) if kind not in ("right", "full"):
            return dict.fromkeys(range(len(left.fields)))
        case Window(partition=partition):
            return {key.index: None for key in partition if isinstance(key, ColumnRef)}
        case _:
            return None
