"""Each row's frame: up to three ranges of rows, in order and apart."""

from __future__ import annotations

from typing import Generic

from bamquery.data_types.type_groups import value_type
from bamquery.engine.windows.partitions import Partitions
from bamquery.engine.windows.ranges import Ranges
from bamquery.engine.windows.rows import A, C, WindowRows
from bamquery.engine.windows.vectors import Mask, V
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import SortKey
from bamquery.plan.windows import Bound, WindowFrame


class Frames(Generic[V, C, A]):
    """The frames of rows in order."""

    def __init__(
        self, rows: WindowRows[V, C, A], partitions: Partitions[V], order: tuple[SortKey, ...]
    ) -> None:
        self._rows = rows
        self._partitions = partitions
        self._order = order

    def find(self, frame: WindowFrame) -> list[Ranges[V]]:
        """Those of one description.

        Raises:
            ExecutionError: an offset is null or below zero, or a bound cannot be computed.
        """
        partitions = self._partitions
        start = self._edge(frame, frame.start, ends=False)
        end = start.maximum(self._edge(frame, frame.end, ends=True))
        own = partitions.own
        match frame.exclude:
            case "no others":
                return [Ranges(start, end)]
            case "current row":
                return _exclude_hole(start, end, own, own + 1)
            case "group":
                return _exclude_hole(start, end, partitions.peer_start, partitions.peer_end)
            case "ties":
                before, after = _exclude_hole(start, end, partitions.peer_start, partitions.peer_end)
                inside = ((start <= own) & (own < end)).numbers()
                return [before, Ranges(own, own + inside), after]

    def _edge(self, frame: WindowFrame, bound: Bound, *, ends: bool) -> V:
        """Where frames start, or end."""
        partitions = self._partitions
        if bound.kind == "unbounded preceding":
            return partitions.start
        if bound.kind == "unbounded following":
            return partitions.end
        if bound.kind == "current row":
            if frame.unit == "rows":
                return partitions.own + int(ends)
            return partitions.peer_end if ends else partitions.peer_start
        if frame.unit == "range":
            return self._range_edge(bound, ends=ends)
        distance = self._distances(frame, bound)
        toward = -distance if bound.kind == "preceding" else distance
        if frame.unit == "rows":
            return (partitions.own + toward + int(ends)).clip(partitions.start, partitions.end)
        first, last = partitions.first_group, partitions.last_group
        group = partitions.peers + toward
        edges = (partitions.peer_ends if ends else partitions.peer_begins).take(group.clip(first, last))
        edges = (group > last).choose(partitions.end, edges)
        return (group < first).choose(partitions.start, edges)

    def _distances(self, frame: WindowFrame, bound: Bound) -> V:
        assert bound.offset is not None
        (offsets,) = self._rows.evaluate([bound.offset])
        words = f"{frame.unit.upper()} {bound.kind.upper()}"
        if frame.unit == "rows" and self._rows.has_nulls(offsets):
            raise ExecutionError(f"{words} needs a number, not NULL")
        distances = self._rows.numbers(offsets, 0)
        if (distances < 0).any():
            raise ExecutionError(f"{words} needs a number that is not below zero")
        # No frame reaches further than all rows; sums of positions must not overflow.
        return distances.minimum(self._partitions.reach)

    def _range_edge(self, bound: Bound, *, ends: bool) -> V:
        """By the order's value: rows with null, which are peers, have their peers for a bound.

        So have rows whose offset is null, as in DuckDB.
        """
        rows, partitions = self._rows, self._partitions
        assert bound.offset is not None
        assert bound.key is not None
        keys, targets = rows.evaluate([bound.key, bound.offset])
        ranks, wanted = rows.ranks(keys, targets, value_type(bound.key.type))
        (key,) = self._order
        if key.descending:
            ranks, wanted = -ranks, -wanted
        known = rows.valid(keys)
        bounded = known & rows.valid(targets)
        wrong = (wanted > ranks) if bound.kind == "preceding" else (wanted < ranks)
        if (bounded & wrong).any():
            raise ExecutionError(f"RANGE {bound.kind.upper()} needs an offset that is not below zero")
        low, high = _known_rows(partitions, known)
        found = _search(ranks, wanted, low, high, beyond=ends)
        return bounded.choose(found, partitions.peer_end if ends else partitions.peer_start)


def _exclude_hole(start: V, end: V, hole_start: V, hole_end: V) -> list[Ranges[V]]:
    """What is left before a hole and behind it."""
    before, after = end.minimum(hole_start), start.maximum(hole_end)
    return [Ranges(start, start.maximum(before)), Ranges(after.minimum(end), end)]


def _known_rows(partitions: Partitions[V], known: Mask[V]) -> tuple[V, V]:
    """Where the rows without null begin and end in each row's partition; nulls are first or last."""
    totals = known.totals()
    starts, ends = partitions.starts, partitions.ends
    counts = totals.take(ends) - totals.take(starts)
    begin = known.numbers().take(starts).equals(0).choose(ends - counts, starts)
    return begin.take(partitions.number), (begin + counts).take(partitions.number)


def _search(ranks: V, wanted: V, low: V, high: V, *, beyond: bool) -> V:
    """The first position from `low` on whose rank is not below the wanted one, or, if `beyond`, is above it.

    For each row; `high` where there is none. Ranks ascend from `low` to `high`.
    """
    last = len(ranks) - 1
    while True:
        open_ = low < high
        if not open_.any():
            return low
        middle = (low + high) // 2
        seen = ranks.take(middle.minimum(last))
        before = (seen <= wanted) if beyond else (seen < wanted)
        low = (open_ & before).choose(middle + 1, low)
        high = (open_ & ~before).choose(middle, high)
