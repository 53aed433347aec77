"""Columns that nothing above reads are not computed, and not read from storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from bamquery.plan.expressions import AggregateCall, Expression, referenced_columns
from bamquery.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Limit,
    Plan,
    Project,
    Recursion,
    Repeat,
    Sample,
    Scan,
    SingleRow,
    Sort,
    Union,
    Values,
    Window,
)
from bamquery.plan.rewriting import (
    columns_of,
    computed_once,
    map_arguments,
    map_key,
    parents_first,
    renumber,
    with_fields,
)
from bamquery.plan.windows import map_call
from bamquery.statement_context.cancellation import check_cancelled

_MOST_VARIANTS: Final = 4
"""For so many different sets of columns a node that is read by several is pruned: then all that are left read
one and the same, with every column."""


def prune_columns(plan: Plan) -> Plan:
    """Keep the root's columns, and of every node below what those need."""
    everything = frozenset(range(len(plan.fields)))
    pruned, positions = _Pruning(_Needs(plan).of_all_readers(everything))(plan, everything)
    assert all(old == new for old, new in positions.items())
    return pruned


_Pruned: TypeAlias = tuple[Plan, dict[int, int]]


class _Pruning:
    """What became of each node for the columns that others needed of it."""

    def __init__(self, of_all_readers: Mapping[int, frozenset[int]]) -> None:
        self._of_all_readers = of_all_readers
        self._made: dict[tuple[int, frozenset[int]], tuple[Plan, _Pruned]] = {}
        self._variants: Counter[int] = Counter()

    def __call__(self, plan: Plan, needed: frozenset[int]) -> _Pruned:
        """The plan with at least the columns needed, and where each of those is now."""
        needed |= self._of_all_readers.get(id(plan), frozenset())
        found = self._made.get((id(plan), needed))
        if found is None:
            check_cancelled()
            self._variants[id(plan)] += 1
            everything = frozenset(range(len(plan.fields)))
            if self._variants[id(plan)] > _MOST_VARIANTS and needed != everything:
                made = self(plan, everything)
            else:
                made = self._prune(plan, needed)
            found = self._made[id(plan), needed] = (plan, made)
        return found[1]

    def _prune(self, plan: Plan, needed: frozenset[int]) -> _Pruned:
        match plan:
            case Scan(columns=columns):
                kept = sorted(needed)
                return with_fields(plan, columns=tuple(columns[i] for i in kept)), _positions(kept)
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
                below, positions = self(child, needed | referenced_columns(predicate))
                return with_fields(plan, child=below, predicate=renumber(predicate, positions)), positions
            case Sort(child=child, keys=keys):
                below, positions = self(child, needed | referenced_columns(*(k.expression for k in keys)))
                moved = tuple(map_key(k, lambda e: renumber(e, positions)) for k in keys)
                return with_fields(plan, child=below, keys=moved), positions
            case Limit(child=child) | Sample(child=child):
                below, positions = self(child, needed)
                return with_fields(plan, child=below), positions
            case Repeat(child=child, count=count):
                below, positions = self(child, needed | referenced_columns(count))
                return with_fields(plan, child=below, count=renumber(count, positions)), positions
            case Join():
                return self._prune_join(plan, needed)
            case Union():
                return self._prune_union(plan, needed)
            case Recursion(first=first, step=step):  # the step may read any column of the rows before
                everything = range(len(plan.fields))
                whole = with_fields(plan, first=prune_columns(first), step=prune_columns(step))
                return whole, _positions(list(everything))
            case Project():
                return self._prune_project(plan, needed)
            case Aggregate():
                return self._prune_aggregate(plan, needed)
            case Window():
                return self._prune_window(plan, needed)

    def _prune_project(self, plan: Project, needed: frozenset[int]) -> _Pruned:
        if not needed:  # only the number of rows matters
            return self(plan.child, frozenset())
        kept = sorted(needed)
        expressions = [plan.expressions[i] for i in kept]
        below, positions = self(plan.child, referenced_columns(*expressions))
        moved = tuple(renumber(expression, positions) for expression in expressions)
        names = tuple(plan.names[i] for i in kept)
        return with_fields(plan, child=below, expressions=moved, names=names), _positions(kept)

    def _prune_join(self, plan: Join, needed: frozenset[int]) -> _Pruned:
        width = len(plan.left.fields)
        # What stands after the left's columns is the mark; in the condition it is the right's columns.
        marks = plan.kind == "mark"
        read = needed - {width} if marks else needed
        if plan.condition is not None:
            read |= referenced_columns(plan.condition)
        left, of_left = self(plan.left, frozenset(i for i in read if i < width))
        right, of_right = self(plan.right, frozenset(i - width for i in read if i >= width))
        now = len(left.fields)
        positions = {**of_left, **{width + old: now + new for old, new in of_right.items()}}
        condition = None if plan.condition is None else renumber(plan.condition, positions)
        pruned = with_fields(plan, left=left, right=right, condition=condition)
        if plan.kind in ("semi", "anti"):
            return pruned, of_left
        return pruned, {**of_left, width: now} if marks else positions

    def _prune_union(self, plan: Union, needed: frozenset[int]) -> _Pruned:
        """Each input with just the columns needed: they must stay alike."""
        kept = sorted(needed)
        return with_fields(
            plan, inputs=tuple(self._keep_columns(child, kept) for child in plan.inputs)
        ), _positions(kept)

    def _keep_columns(self, plan: Plan, kept: list[int]) -> Plan:
        below, positions = self(plan, frozenset(kept))
        columns = columns_of(below)
        if [positions[i] for i in kept] == list(range(len(columns))):
            return below
        chosen = tuple(columns[positions[i]] for i in kept)
        return Project(below, chosen, tuple(column.name for column in chosen))

    def _prune_aggregate(self, plan: Aggregate, needed: frozenset[int]) -> _Pruned:
        """All keys stay, since they make the groups; calls that are not read go."""
        count = len(plan.keys)
        kept = [*range(count), *sorted(i for i in needed if i >= count)]
        if not kept and plan.aggregates:  # one row, whatever comes in: some call may as well stand for it
            kept = [0]
        last = len(plan.fields) - 1
        if plan.sets and last not in kept:
            kept.append(last)
        calls = [plan.aggregates[i - count] for i in kept if count <= i < count + len(plan.aggregates)]
        below, positions = self(plan.child, referenced_columns(*_read_by(plan.keys, calls)))
        keys = tuple(renumber(key, positions) for key in plan.keys)
        moved = tuple(map_arguments(call, lambda e: renumber(e, positions)) for call in calls)
        names = tuple(plan.names[i] for i in kept)
        return with_fields(plan, child=below, keys=keys, aggregates=moved, names=names), _positions(kept)

    def _prune_window(self, plan: Window, needed: frozenset[int]) -> _Pruned:
        """Calls that are not read go, and the node with the last of them."""
        count = len(plan.child.fields)
        kept = sorted(i - count for i in needed if i >= count)
        below_needed = frozenset(i for i in needed if i < count)
        if not kept:
            return self(plan.child, below_needed)
        calls = [plan.calls[i] for i in kept]
        read = [
            *plan.partition,
            *(key.expression for key in plan.order),
            *(e for c in calls for e in c.inputs),
        ]
        below, positions = self(plan.child, below_needed | referenced_columns(*read))
        width = len(below.fields)

        def move(expression: Expression) -> Expression:
            return renumber(expression, positions)

        window = with_fields(
            plan,
            child=below,
            partition=tuple(map(move, plan.partition)),
            order=tuple(map_key(key, move) for key in plan.order),
            calls=tuple(map_call(call, move) for call in calls),
            names=tuple(plan.names[i] for i in kept),
        )
        places = {count + i: width + place for place, i in enumerate(kept)}
        return window, {**{i: positions[i] for i in below_needed}, **places}


class _Needs(_Pruning):
    """Which columns all readers together need of nodes that are too large to be there once for each."""

    def __init__(self, plan: Plan) -> None:
        super().__init__({})
        self._plan = plan
        self._once = computed_once(plan)
        self._needed: dict[int, dict[frozenset[int], None]] = {}

    def __call__(self, plan: Plan, needed: frozenset[int]) -> _Pruned:
        """The plan as it is: what is needed of it is taken down."""
        self._needed.setdefault(id(plan), {})[needed] = None
        return plan, {i: i for i in range(len(plan.fields))}

    def of_all_readers(self, needed: frozenset[int]) -> dict[int, frozenset[int]]:
        """By the nodes' numbers, where so much is needed of the whole plan."""
        if not self._once:
            return {}
        self(self._plan, needed)
        found = {}
        for node in parents_first(self._plan):
            wanted = self._needed.get(id(node))
            if wanted is None:  # of a step, or of what is pruned away
                continue
            check_cancelled()
            sets = list(wanted)
            if id(node) in self._once:
                sets = [frozenset().union(*sets)]
                found[id(node)] = sets[0]
            elif len(sets) > _MOST_VARIANTS:
                sets = [frozenset(range(len(node.fields)))]
            for each in sets:
                self._prune(node, each)
        return found


def _read_by(keys: Iterable[Expression], calls: Iterable[AggregateCall]) -> list[Expression]:
    return [*keys, *(expression for call in calls for expression in call.inputs)]


def _positions(kept: list[int]) -> dict[int, int]:
    return {old: new for new, old in enumerate(kept)}
