"""Aggregates over the rows of each frame, by the shortest way that the frames allow."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, cast

import numpy as np
import pyarrow as pa

from bamquery.engine.cpu.aggregates.accumulator import Accumulator
from bamquery.engine.cpu.aggregates.aggregation import CpuGroups, call_inputs
from bamquery.engine.cpu.aggregates.registry import accumulator_of
from bamquery.engine.cpu.aggregates.string_agg import StringAgg
from bamquery.engine.cpu.aggregates.value_lists import HolisticAggregate
from bamquery.engine.cpu.expressions.evaluation import evaluate_columns
from bamquery.engine.cpu.frames import concatenate_columns, take_batch
from bamquery.engine.cpu.kernels import Column, boolean_values, from_values, take
from bamquery.engine.cpu.keys.grouping import group_rows
from bamquery.engine.cpu.windows.call_values import ComputedValues, FrameValues
from bamquery.engine.cpu.windows.framed_values import renumber_frames
from bamquery.engine.cpu.windows.frames import Ranges, clip_frames
from bamquery.engine.cpu.windows.partitions import Positions
from bamquery.engine.cpu.windows.running import (
    Edges,
    can_accumulate,
    difference_states,
    running_states,
    state_of_none,
)
from bamquery.engine.cpu.windows.state_tree import StateTree
from bamquery.engine.cpu.windows.string_sizes import FrameStringSizes
from bamquery.engine.execution.string_limits import current_string_limits, require_room
from bamquery.plan.expressions import AggregateCall
from bamquery.statement_context.cancellation import check_cancelled

Outside: TypeAlias = tuple["CpuGroups | None", "CpuGroups | None"]
"""The states of what is before the rows and behind them."""

_FRAMES: Final = 1 << 16
"""Frames computed at once: between two such steps a query can stop."""
_ROWS: Final = 1 << 20
"""Rows of frames that are looked at at once, where each frame is looked at as a whole."""


def framed_aggregate(
    call: AggregateCall,
    batch: pa.RecordBatch,
    frames: Sequence[Ranges],
    outside: Outside | None = None,
) -> FrameValues:
    """The aggregate of each row's frame.

    With `outside`, frames may begin before the batch and end behind it: there these states are.

    Raises:
        ExecutionError: an argument cannot be computed, or a value does not fit its type.
    """
    accumulator = accumulator_of(replace(call, distinct=False))
    whole = call.distinct or isinstance(accumulator, HolisticAggregate)
    if outside is not None:
        frames = clip_frames(frames, batch.num_rows) if whole else _state_positions(frames, batch.num_rows)
    if call.filter is not None:
        (mask,) = evaluate_columns([call.filter], batch)
        given = boolean_values(mask)
        if outside is None or whole:
            kept, frames = renumber_frames(given, frames)
        else:
            _, frames = renumber_frames(np.concatenate([[True], given, [True]]), frames)
            kept = np.flatnonzero(given)
        batch = take_batch(batch, kept)
    rows = call_inputs(call, batch)
    numbers, frames = _distinct_frames(frames)
    edges = None if outside is None or whole else _edges(accumulator, rows, outside)
    if edges is None and len(frames) == 1 and _are_disjoint(frames[0]):
        whole = True
    distinct = len(call.arguments) if call.distinct else 0
    if not whole and (accumulator.exact or can_accumulate(accumulator, frames)):
        known = (
            difference_states(accumulator, rows, frames, edges)
            if accumulator.exact
            else running_states(accumulator, rows, frames[0], edges)
        )
        return FrameValues(numbers, ComputedValues(known).compute_rows)
    sizes = FrameStringSizes.from_rows(rows)
    texts = sizes if _is_text(call.type) else None
    if whole:
        between = accumulator.between if isinstance(accumulator, StringAgg) else None

        def by_rows(start: int, stop: int) -> Column:
            own = _select_frames(frames, slice(start, stop))
            if texts is not None:
                texts.require_room(call.function, own, between)
            return concatenate_columns(list(_aggregate_by_rows(accumulator, rows, own, distinct, sizes)))

        return FrameValues(numbers, by_rows)
    tree = StateTree(accumulator, rows, edges)

    def aggregate_by_states(start: int, stop: int) -> Column:
        pieces = []
        if texts is not None:
            require_room(f"{call.function}() over a window", texts.longest * (stop - start), stop - start)
        for first in range(start, stop, _FRAMES):
            check_cancelled()
            pieces.append(tree.answers(_select_frames(frames, slice(first, min(first + _FRAMES, stop)))))
        return concatenate_columns(pieces)

    return FrameValues(numbers, aggregate_by_states)


def _state_positions(frames: Sequence[Ranges], rows: int) -> list[Ranges]:
    """The frames as positions among states: that of all before the rows, the rows', that of all behind."""

    def places(edges: Positions) -> Positions:
        return edges.clip(-1, rows + 1) + 1

    return [Ranges(places(frame.start), np.maximum(places(frame.end), 1)) for frame in frames]


def _edges(accumulator: Accumulator, rows: Column, outside: Outside) -> Edges:
    before, after = (state_of_none(accumulator, rows) if s is None else s.parts[0] for s in outside)
    return before, after


def _distinct_frames(frames: Sequence[Ranges]) -> tuple[Positions, list[Ranges]]:
    """Which frame each row has, and those frames: neighbours often share one."""
    changes = np.zeros(len(frames[0].start), np.bool_)
    changes[:1] = True
    for frame in frames:
        for edges in (frame.start, frame.end):
            check_cancelled()
            changes[1:] |= edges[1:] != edges[:-1]
    numbers: Positions = np.cumsum(changes) - 1
    check_cancelled()
    return numbers, _select_frames(frames, np.flatnonzero(changes))


def _select_frames(frames: Sequence[Ranges], which: slice | Positions) -> list[Ranges]:
    found = []
    for frame in frames:
        starts = frame.start[which]
        check_cancelled()
        found.append(Ranges(starts, frame.end[which]))
    return found


def _are_disjoint(frame: Ranges) -> bool:
    """Whether no row is in two frames, so that looking at whole frames is the shortest way."""
    return bool((frame.start[1:] >= frame.end[:-1]).all())


def _aggregate_by_rows(
    accumulator: Accumulator,
    rows: Column,
    frames: Sequence[Ranges],
    distinct: int,
    string_sizes: FrameStringSizes | None,
) -> Generator[Column, None, None]:
    """Each frame's rows as one group; the first `distinct` arguments, if any, once in each."""
    starts = np.stack([frame.start for frame in frames], axis=1)
    sizes = np.stack([frame.end for frame in frames], axis=1) - starts
    ends = np.cumsum(sizes.sum(axis=1))
    texts_end = None if string_sizes is None else np.cumsum(string_sizes.frame_bytes(frames))
    piece = current_string_limits().piece
    begin = 0
    while begin < len(ends):
        check_cancelled()
        done = int(ends[begin - 1]) if begin else 0
        end = int(np.searchsorted(ends, done + _ROWS, side="right"))
        if texts_end is not None:
            taken = int(texts_end[begin - 1]) if begin else 0
            end = min(end, int(np.searchsorted(texts_end, taken + piece, side="right")))
        end = max(end, begin + 1)
        own_starts, own_sizes = starts[begin:end].ravel(), sizes[begin:end].ravel()
        offsets = np.cumsum(own_sizes) - own_sizes
        places = np.repeat(own_starts - offsets, own_sizes) + np.arange(int(own_sizes.sum()))
        codes = np.repeat(np.arange(end - begin), sizes[begin:end].sum(axis=1))
        if distinct:
            places, codes = _first_of_equal(rows, places, codes, distinct)
        state = accumulator.partial(take(rows, places), codes, end - begin)
        yield accumulator.final(state)
        begin = end


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)


def _first_of_equal(
    rows: Column, places: Positions, codes: Positions, arguments: int
) -> tuple[Positions, Positions]:
    """The first of the rows of a group that have the same arguments."""
    chosen = take(rows, places)
    fields = cast("pa.StructArray", chosen).flatten() if pa.types.is_struct(chosen.type) else [chosen]
    grouping = group_rows([from_values(codes, pa.int64()), *fields[:arguments]], len(codes))
    _, first = np.unique(np.asarray(grouping.codes), return_index=True)
    return places[first], codes[first]
