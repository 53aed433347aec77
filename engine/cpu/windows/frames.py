"""Each row's frame: up to three ranges of rows, in order and apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.expressions.evaluation import evaluate_columns
from bamquery.engine.cpu.frames import concatenate_columns, decode_dictionary, make_batch
from bamquery.engine.cpu.kernels import Column, boolean_values, compute, stored_values, take
from bamquery.engine.cpu.keys.grouping import group_rows
from bamquery.engine.cpu.keys.sorting import sorted_positions
from bamquery.engine.cpu.windows.partitions import Partitions, Positions
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import ColumnRef, SortKey
from bamquery.plan.windows import Bound, WindowFrame


@dataclass(frozen=True)
class Ranges:
    """Rows from `start` to before `end`, for each row; without any where they are equal."""

    start: Positions
    end: Positions


def clip_frames(frames: Sequence[Ranges], rows: int) -> list[Ranges]:
    """What the frames have of so many rows, where they reach beyond them."""
    return [Ranges(frame.start.clip(0, rows), frame.end.clip(0, rows)) for frame in frames]


def find_frames(
    frame: WindowFrame, partitions: Partitions, order: tuple[SortKey, ...], batch: pa.RecordBatch
) -> list[Ranges]:
    """The frames of rows in order.

    Raises:
        ExecutionError: an offset is null or below zero, or a bound cannot be computed.
    """
    start = _edge(frame, frame.start, partitions, order, batch, ends=False)
    end = _edge(frame, frame.end, partitions, order, batch, ends=True)
    end = np.maximum(start, end)
    rows = np.arange(partitions.rows)
    match frame.exclude:
        case "no others":
            return [Ranges(start, end)]
        case "current row":
            return _exclude_hole(start, end, rows, rows + 1)
        case "group":
            return _exclude_hole(start, end, partitions.peer_start, partitions.peer_end)
        case "ties":
            before, after = _exclude_hole(start, end, partitions.peer_start, partitions.peer_end)
            inside = (start <= rows) & (rows < end)
            return [before, Ranges(rows, rows + inside), after]


def _exclude_hole(
    start: Positions, end: Positions, hole_start: Positions, hole_end: Positions
) -> list[Ranges]:
    """What is left before a hole and behind it."""
    before = np.minimum(end, hole_start)
    after = np.maximum(start, hole_end)
    return [Ranges(start, np.maximum(start, before)), Ranges(np.minimum(after, end), end)]


def _edge(
    frame: WindowFrame,
    bound: Bound,
    partitions: Partitions,
    order: tuple[SortKey, ...],
    batch: pa.RecordBatch,
    *,
    ends: bool,
) -> Positions:
    """Where frames start, or end."""
    rows = np.arange(partitions.rows)
    if bound.kind == "unbounded preceding":
        return partitions.start
    if bound.kind == "unbounded following":
        return partitions.end
    if bound.kind == "current row":
        if frame.unit == "rows":
            return rows + ends
        return partitions.peer_end if ends else partitions.peer_start
    if frame.unit == "range":
        return _range_edge(bound, partitions, order[0], batch, ends=ends)
    distance = _distances(frame, bound, partitions, batch)
    toward = -distance if bound.kind == "preceding" else distance
    if frame.unit == "rows":
        clipped: Positions = np.clip(rows + toward + ends, partitions.start, partitions.end)
        return clipped
    first, last = partitions.first_group, partitions.last_group
    group = partitions.peers + toward
    inside = np.clip(group, first, last)
    edges = (partitions.peer_ends if ends else partitions.peer_begins)[inside]
    return np.where(group < first, partitions.start, np.where(group > last, partitions.end, edges))


def _distances(frame: WindowFrame, bound: Bound, partitions: Partitions, batch: pa.RecordBatch) -> Positions:
    assert bound.offset is not None
    (offsets,) = evaluate_columns([bound.offset], batch)
    words = f"{frame.unit.upper()} {bound.kind.upper()}"
    distances = stored_values(offsets)
    if offsets.null_count:
        if frame.unit == "rows":
            raise ExecutionError(f"{words} needs a number, not NULL")
        distances = np.where(boolean_values(compute("is_valid", offsets)), distances, 0)
    if (distances < 0).any():
        raise ExecutionError(f"{words} needs a number that is not below zero")
    # No frame reaches further than all rows; sums of positions must not overflow.
    nearer: Positions = np.minimum(distances, partitions.reach)
    return nearer


def _range_edge(
    bound: Bound, partitions: Partitions, order: SortKey, batch: pa.RecordBatch, *, ends: bool
) -> Positions:
    """By the order's value: rows with null, which are peers, have their peers for a bound.

    So have rows whose offset is null, as in DuckDB.
    """
    assert bound.offset is not None
    assert bound.key is not None
    keys, targets = (decode_dictionary(c) for c in evaluate_columns([bound.key, bound.offset], batch))
    ranks, wanted = _ranks(keys, targets)
    if order.descending:
        ranks, wanted = -ranks, -wanted
    known = boolean_values(compute("is_valid", keys))
    bounded = known & boolean_values(compute("is_valid", targets))
    wrong = (wanted > ranks) if bound.kind == "preceding" else (wanted < ranks)
    if (bounded & wrong).any():
        raise ExecutionError(f"RANGE {bound.kind.upper()} needs an offset that is not below zero")
    low, high = _known_rows(partitions, known)
    found = _search(ranks, wanted, low, high, beyond=ends)
    return np.where(bounded, found, partitions.peer_end if ends else partitions.peer_start)


def _ranks(keys: Column, targets: Column) -> tuple[Positions, Positions]:
    """Numbers that order the values of both columns, equal for equal ones."""
    rows = len(keys)
    both = concatenate_columns([keys, targets])
    order = sorted_positions(make_batch([both], 2 * rows), [SortKey(ColumnRef(0, "", both.type))], None)
    codes = np.asarray(group_rows([take(both, order)], 2 * rows).codes)
    steps = np.zeros(2 * rows, np.int64)
    steps[1:] = codes[1:] != codes[:-1]
    ranks = np.empty(2 * rows, np.int64)
    ranks[stored_values(order)] = np.cumsum(steps)
    return ranks[:rows], ranks[rows:]


def _known_rows(partitions: Partitions, known: NDArray[np.bool_]) -> tuple[Positions, Positions]:
    """Where the rows without null begin and end in each row's partition; nulls are first or last."""
    counts = np.add.reduceat(known.astype(np.int64), partitions.starts)
    nulls_first = ~known[partitions.starts]
    ends = np.append(partitions.starts[1:], partitions.rows)
    begin = np.where(nulls_first, ends - counts, partitions.starts)
    return begin[partitions.number], (begin + counts)[partitions.number]


def _search(
    ranks: Positions, wanted: Positions, low: Positions, high: Positions, *, beyond: bool
) -> Positions:
    """The first position from `low` on whose rank is not below the wanted one, or, if `beyond`, is above it.

    For each row; `high` where there is none. Ranks ascend from `low` to `high`.
    """
    low, high = low.copy(), high.copy()
    last = len(ranks) - 1
    while True:
        open_ = low < high
        if not open_.any():
            return low
        middle = (low + high) // 2
        seen = ranks[np.minimum(middle, last)]
        before = (seen <= wanted) if beyond else (seen < wanted)
        low = np.where(open_ & before, middle + 1, low)
        high = np.where(open_ & ~before, middle, high)
