"""Aggregates over the rows of each frame, by the shortest way that the frames allow."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.accumulator import Accumulator, StateColumns, concatenate_state_columns
from bamquery.engine.cpu.aggregates.aggregation import call_inputs
from bamquery.engine.cpu.aggregates.registry import accumulator_of
from bamquery.engine.cpu.aggregates.string_agg import StringAgg
from bamquery.engine.cpu.aggregates.value_lists import HolisticAggregate
from bamquery.engine.cpu.expressions.evaluation import evaluate_columns
from bamquery.engine.cpu.frames import concatenate_columns, take_batch
from bamquery.engine.cpu.kernels import Column, boolean_values, from_values, take
from bamquery.engine.cpu.keys.grouping import group_rows
from bamquery.engine.cpu.vectors import Mask, Vector, Vectors
from bamquery.engine.cpu.windows.call_values import ComputedValues, FrameValues
from bamquery.engine.cpu.windows.running import (
    Edges,
    can_accumulate,
    difference_states,
    row_states,
    running_states,
    state_of_none,
)
from bamquery.engine.cpu.windows.string_sizes import FrameStringSizes
from bamquery.engine.execution.string_limits import current_string_limits, require_room
from bamquery.engine.windows.ranges import (
    Ranges,
    distinct_frames,
    frame_sizes,
    renumber_frames,
    renumber_states,
    rows_of_frames,
    select_frames,
)
from bamquery.engine.windows.rows import Outside
from bamquery.engine.windows.state_tree import States, StateTree
from bamquery.plan.expressions import AggregateCall

_FRAMES: Final = 1 << 16
"""Frames computed at once from a tree at most."""
_FRAME_BYTES: Final = 1024
"""Bytes that a frame's states take meanwhile."""
_ROWS: Final = 1 << 20
"""Rows of frames that are looked at at once at most, where each frame is looked at as a whole."""
_ROW_BYTES: Final = 256
"""Bytes that a row takes meanwhile."""
_LEAST: Final = 1 << 10
"""Frames or rows that are computed at once however scarce memory is."""


def framed_aggregate(
    call: AggregateCall,
    batch: pa.RecordBatch,
    frames: Sequence[Ranges[Vector]],
    outside: Outside | None = None,
) -> FrameValues:
    """The aggregate of each row's frame.

    With `outside`, frames may begin before the batch and end behind it: there these states are.

    Raises:
        ExecutionError: an argument cannot be computed, or a value does not fit its type.
    """
    accumulator = accumulator_of(call)
    whole = call.distinct or isinstance(accumulator, HolisticAggregate)
    among_states = outside is not None and not whole
    if outside is not None:
        count = batch.num_rows
        frames = [one.among_states(count) if among_states else one.clip(count) for one in frames]
    if call.filter is not None:
        (column,) = evaluate_columns([call.filter], batch)
        mask = Mask(boolean_values(column))
        frames = renumber_states(Vectors(), mask, frames) if among_states else renumber_frames(mask, frames)
        batch = take_batch(batch, mask.places().values)
    rows = call_inputs(call, batch)
    numbers, frames = distinct_frames(frames)
    edges = None if outside is None or whole else _edges(accumulator, rows, outside)
    disjoint = edges is None and len(frames) == 1 and frames[0].are_disjoint()
    distinct = len(call.arguments) if call.distinct else 0
    if distinct and len(frames) == 1 and not disjoint:
        first = _first_of_frames(rows, frames[0], distinct)
        if first is not None:
            # Other rows change no frame: what is left is the aggregate of all rows of each.
            frames, rows, distinct = renumber_frames(first, frames), take(rows, first.places().values), 0
            whole = isinstance(accumulator, HolisticAggregate)
    whole |= disjoint
    if not whole and (accumulator.exact or can_accumulate(accumulator, frames)):
        known = (
            difference_states(accumulator, rows, frames, edges)
            if accumulator.exact
            else running_states(accumulator, rows, frames[0], edges)
        )
        return FrameValues(numbers.values, ComputedValues(known).compute_rows)
    sizes = FrameStringSizes.from_rows(rows)
    strings = sizes if _is_string(call.type) else None
    if whole:
        between = accumulator.between if isinstance(accumulator, StringAgg) else None

        def aggregate_by_rows(start: int, stop: int) -> Column:
            own = select_frames(frames, start, stop)
            if strings is not None:
                strings.require_room(call.function, own, between)
            return concatenate_columns(list(_aggregate_by_rows(accumulator, rows, own, distinct, sizes)))

        return FrameValues(numbers.values, aggregate_by_rows)
    tree = state_tree(accumulator, rows, edges)

    def aggregate_by_states(start: int, stop: int) -> Column:
        if strings is not None:
            require_room(f"{call.function}() over a window", strings.longest * (stop - start), stop - start)
        own = select_frames(frames, start, stop)
        at_once = _at_once(_FRAME_BYTES, _FRAMES)
        return concatenate_columns(list(tree.compute_frames(own, at_once)))

    return FrameValues(numbers.values, aggregate_by_states)


def _edges(accumulator: Accumulator, rows: Column, outside: Outside) -> Edges:
    known = (None if state is None else accumulator.unfold(state.aggregates[0]) for state in outside)
    before, after = (state_of_none(accumulator, rows) if state is None else state for state in known)
    return before, after


def _aggregate_by_rows(
    accumulator: Accumulator,
    rows: Column,
    frames: Sequence[Ranges[Vector]],
    distinct: int,
    string_sizes: FrameStringSizes | None,
) -> Generator[Column, None, None]:
    """Each frame's rows as one group; the first `distinct` arguments, if any, once in each."""
    ends = np.cumsum(frame_sizes(frames).values)
    strings_end = None if string_sizes is None else np.cumsum(string_sizes.frame_bytes(frames))
    piece = current_string_limits().piece
    at_once = _at_once(_ROW_BYTES, _ROWS)
    begin = 0
    while begin < len(ends):
        done = int(ends[begin - 1]) if begin else 0
        end = int(np.searchsorted(ends, done + at_once, side="right"))
        if strings_end is not None:
            taken = int(strings_end[begin - 1]) if begin else 0
            end = min(end, int(np.searchsorted(strings_end, taken + piece, side="right")))
        end = max(end, begin + 1)
        found, owners = rows_of_frames(Vectors(), select_frames(frames, begin, end))
        places, codes = found.values, owners.values
        if distinct:
            places, codes = _first_of_equal(rows, places, codes, distinct)
        state = accumulator.partial(take(rows, places), codes, end - begin)
        yield accumulator.final(state)
        begin = end


def state_tree(
    accumulator: Accumulator, rows: Column, edges: Edges | None = None
) -> StateTree[Vector, StateColumns, Column]:
    """The states over the rows of a column."""
    size = len(rows) + (0 if edges is None else 2)
    return StateTree(Vectors(), _States(accumulator), row_states(accumulator, rows, edges), size)


@dataclass(frozen=True, slots=True)
class _States(States[Vector, StateColumns, Column]):
    """Those of an accumulator."""

    accumulator: Accumulator

    def merge(self, states: StateColumns, owners: Vector, groups: int) -> StateColumns:
        return self.accumulator.merge(states, owners.values, groups)

    def take(self, states: StateColumns, places: Vector) -> StateColumns:
        at = places.values
        return tuple(take(column, at) if isinstance(column, pa.Array) else column[at] for column in states)

    def concatenate(self, pieces: Sequence[StateColumns]) -> StateColumns:
        return tuple(concatenate_state_columns(columns) for columns in zip(*pieces, strict=True))

    def final(self, states: StateColumns) -> Column:
        return self.accumulator.final(states)


def _at_once(size: int, most: int) -> int:
    """How many of so many bytes are computed at once: what they take is as large as a piece of text."""
    return min(max(current_string_limits().piece // size, _LEAST), most)


def _is_string(kind: pa.DataType) -> bool:
    return pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)


def _first_of_frames(rows: Column, frame: Ranges[Vector], arguments: int) -> Mask | None:
    """Which rows are the first in their frames of those with the same arguments.

    None where frames with a row in common begin apart, so that a row is the first in some of its frames only.
    """
    start, end = frame.start.values, frame.end.values
    held = start < end
    begins = np.unique(start[held])
    following = np.append(begins[1:], len(rows))
    if not len(begins) or (end[held] > following[np.searchsorted(begins, start[held])]).any():
        return None
    places = np.arange(len(rows))
    segments = np.searchsorted(begins, places, side="right")
    first: NDArray[np.bool_] = np.zeros(len(rows), np.bool_)
    first[_first_of_equal(rows, places, segments, arguments)[0]] = True
    return Mask(first)


def _first_of_equal(
    rows: Column, places: NDArray[np.int64], codes: NDArray[np.int64], arguments: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first of the rows of a group that have the same arguments."""
    chosen = take(rows, places)
    fields = cast("pa.StructArray", chosen).flatten() if pa.types.is_struct(chosen.type) else [chosen]
    grouping = group_rows([from_values(codes, pa.int64()), *fields[:arguments]], len(codes))
    _, first = np.unique(np.asarray(grouping.codes), return_index=True)
    return places[first], codes[first]
