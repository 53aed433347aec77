"""Each row's frame: up to three ranges of rows, in order and apart."""

from __future__ import annotations

from dataclasses import dataclass

from bamquery.data_types.type_groups import value_type
from bamquery.engine.cuda.expressions.evaluation import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.kernels import INT64, Operand
from bamquery.engine.cuda.vectors import Mask, Vector
from bamquery.engine.cuda.windows.partitions import Partitions
from bamquery.engine.cuda.windows.ranks import ranked
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import SortKey
from bamquery.plan.windows import Bound, WindowFrame


@dataclass(frozen=True)
class Ranges:
    """Rows from `start` to before `end`, for each row; without any where they are equal."""

    start: Vector
    end: Vector

    def sizes(self) -> Vector:
        """How many rows each has."""
        return self.end - self.start

    def take(self, places: Vector) -> Ranges:
        """Those of some rows."""
        return Ranges(self.start.take(places), self.end.take(places))

    def slice(self, start: int, end: int) -> Ranges:
        """Those of the rows from `start` to before `end`."""
        return Ranges(self.start.slice(start, end), self.end.slice(start, end))

    def clip(self, rows: int) -> Ranges:
        """What they have of so many rows, where they reach beyond them."""
        return Ranges(self.start.clip(0, rows), self.end.clip(0, rows))


def find_frames(
    frame: WindowFrame, partitions: Partitions, order: tuple[SortKey, ...], rows: CudaFrame
) -> list[Ranges]:
    """The frames of rows in order.

    Raises:
        ExecutionError: an offset is null or below zero, or a bound cannot be computed.
    """
    start = _edge(frame, frame.start, partitions, order, rows, ends=False)
    end = start.maximum(_edge(frame, frame.end, partitions, order, rows, ends=True))
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


def _exclude_hole(start: Vector, end: Vector, hole_start: Vector, hole_end: Vector) -> list[Ranges]:
    """What is left before a hole and behind it."""
    before, after = end.minimum(hole_start), start.maximum(hole_end)
    return [Ranges(start, start.maximum(before)), Ranges(after.minimum(end), end)]


def _edge(
    frame: WindowFrame,
    bound: Bound,
    partitions: Partitions,
    order: tuple[SortKey, ...],
    rows: CudaFrame,
    *,
    ends: bool,
) -> Vector:
    """Where frames start, or end."""
    if bound.kind == "unbounded preceding":
        return partitions.start
    if bound.kind == "unbounded following":
        return partitions.end
    if bound.kind == "current row":
        if frame.unit == "rows":
            return partitions.own + int(ends)
        return partitions.peer_end if ends else partitions.peer_start
    if frame.unit == "range":
        return _range_edge(bound, partitions, order[0], rows, ends=ends)
    distance = _distances(partitions, frame, bound, rows)
    toward = -distance if bound.kind == "preceding" else distance
    if frame.unit == "rows":
        return (partitions.own + toward + int(ends)).clip(partitions.start, partitions.end)
    first, last = partitions.first_group, partitions.last_group
    group = partitions.peers + toward
    inside = group.clip(first, last)
    edges = (partitions.peer_ends if ends else partitions.peer_begins).take(inside)
    edges = (group > last).choose(partitions.end, edges)
    return (group < first).choose(partitions.start, edges)


def _distances(partitions: Partitions, frame: WindowFrame, bound: Bound, rows: CudaFrame) -> Vector:
    assert bound.offset is not None
    kernels = partitions.kernels
    (offsets,) = evaluate_columns(kernels, [bound.offset], rows)
    words = f"{frame.unit.upper()} {bound.kind.upper()}"
    distances = Vector(kernels, kernels.convert(offsets, INT64))
    if offsets.null_count():
        if frame.unit == "rows":
            raise ExecutionError(f"{words} needs a number, not NULL")
        distances = Mask.from_validity(kernels, offsets).choose(distances, partitions.own * 0)
    if (distances < 0).any():
        raise ExecutionError(f"{words} needs a number that is not below zero")
    # No frame reaches further than all rows; sums of positions must not overflow.
    return distances.minimum(partitions.reach)


def _range_edge(
    bound: Bound, partitions: Partitions, order: SortKey, rows: CudaFrame, *, ends: bool
) -> Vector:
    """By the order's value: rows with null, which are peers, have their peers for a bound.

    So have rows whose offset is null, as in DuckDB.
    """
    kernels = partitions.kernels
    assert bound.offset is not None
    assert bound.key is not None
    keys, targets = evaluate_columns(kernels, [bound.key, bound.offset], rows)
    kind = value_type(bound.key.type)
    numbers = ranked(kernels, Operand(kind, kernels.concatenate([keys, targets]))).numbers
    ranks, wanted = numbers.slice(0, rows.rows), numbers.slice(rows.rows, 2 * rows.rows)
    if order.descending:
        ranks, wanted = -ranks, -wanted
    known = Mask.from_validity(kernels, keys)
    bounded = known & Mask.from_validity(kernels, targets)
    wrong = (wanted > ranks) if bound.kind == "preceding" else (wanted < ranks)
    if (bounded & wrong).any():
        raise ExecutionError(f"RANGE {bound.kind.upper()} needs an offset that is not below zero")
    low, high = _known_rows(partitions, known)
    found = _search(ranks, wanted, low, high, beyond=ends)
    return bounded.choose(found, partitions.peer_end if ends else partitions.peer_start)


def _known_rows(partitions: Partitions, known: Mask) -> tuple[Vector, Vector]:
    """Where the rows without null begin and end in each row's partition; nulls are first or last."""
    numbers = known.numbers()
    totals = numbers.totals()
    starts, ends = partitions.starts, partitions.ends
    counts = totals.take(ends) - totals.take(starts)
    begin = numbers.take(starts).equals(0).choose(ends - counts, starts)
    return begin.take(partitions.number), (begin + counts).take(partitions.number)


def _search(ranks: Vector, wanted: Vector, low: Vector, high: Vector, *, beyond: bool) -> Vector:
    """The first position from `low` on whose rank is not below the wanted one, or, if `beyond`, is above it.

    For each row; `high` where there is none. Ranks ascend from `low` to `high`.
    """
    last = len(ranks) - 1
    while True:
        open_ = low < high
        if not open_.any():
            return low
        middle = (low + high) / 2
        seen = ranks.take(middle.minimum(last))
        before = (seen <= wanted) if beyond else (seen < wanted)
        low = (open_ & before).choose(middle + 1, low)
        high = (open_ & ~before).choose(middle, high)
