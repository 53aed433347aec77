"""Aggregates over the rows of each frame, by the shortest way that the frames allow."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pylibcudf as plc
from pylibcudf.types import TypeId

from bamquery.engine.cuda.aggregates.accumulator import Accumulator, StateColumns, concatenate_state_columns
from bamquery.engine.cuda.aggregates.aggregation import call_inputs, operators_state
from bamquery.engine.cuda.aggregates.registry import accumulator_of
from bamquery.engine.cuda.aggregates.value_lists import HolisticAggregate
from bamquery.engine.cuda.expressions.evaluation import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.keys.grouping import GroupCodes, group_rows
from bamquery.engine.cuda.keys.portions import is_string, string_lengths
from bamquery.engine.cuda.vectors import Mask, Vector, Vectors
from bamquery.engine.cuda.windows.call_values import CallValues, ComputedValues, FrameValues, RowValues
from bamquery.engine.cuda.windows.running import (
    can_accumulate,
    difference_states,
    row_states,
    running_states,
    state_of_none,
)
from bamquery.engine.cuda.windows.string_ranks import number_strings
from bamquery.engine.windows.ranges import (
    Ranges,
    distinct_frames,
    frame_sizes,
    frame_sums,
    renumber_frames,
    renumber_states,
    rows_of_frames,
    select_frames,
)
from bamquery.engine.windows.rows import Outside
from bamquery.engine.windows.state_tree import States, StateTree
from bamquery.plan.expressions import AggregateCall
from bamquery.statement_context.cancellation import check_cancelled

_FRAMES: Final = 1 << 18
"""Frames computed at once from a tree."""
_ROWS: Final = 1 << 23
"""Rows of frames that are looked at at once, where each frame is looked at as a whole."""
_INT32 = plc.DataType(TypeId.INT32)


def framed_aggregate(
    kernels: Kernels,
    call: AggregateCall,
    frame: CudaFrame,
    ranges: Sequence[Ranges[Vector]],
    *,
    outside: Outside | None = None,
) -> CallValues:
    """The aggregate of each row's frame.

    With `outside`, frames may begin before the rows and end behind them: there these states are.

    Raises:
        ExecutionError: an argument cannot be computed, or a value does not fit its type.
    """
    of_ranks = number_strings(kernels, call, frame, outside)
    call, frame, outside = of_ranks.call, of_ranks.frame, of_ranks.outside
    accumulator = accumulator_of(replace(call, distinct=False))
    whole = call.distinct or isinstance(accumulator, HolisticAggregate)
    among_states = outside is not None and not whole
    if outside is not None:
        count = frame.rows
        ranges = [one.among_states(count) if among_states else one.clip(count) for one in ranges]
    if call.filter is not None:
        (column,) = evaluate_columns(kernels, [call.filter], frame)
        mask = Mask(kernels, kernels.fill_null(column))
        vectors = Vectors(kernels)
        ranges = renumber_states(vectors, mask, ranges) if among_states else renumber_frames(mask, ranges)
        frame = kernels.filter_frame(frame, mask.column)
    rows = call_inputs(kernels, call, frame)
    numbers, ranges = distinct_frames(ranges)
    edges = None
    if outside is not None and not whole:
        nothing = state_of_none(kernels, accumulator, rows)
        before, after = (
            nothing if state is None else operators_state(kernels, [call], state).aggregates[0]
            for state in outside
        )
        edges = (before, after)
    if not whole and accumulator.exact:
        found = difference_states(kernels, accumulator, rows, ranges, edges)
    elif not whole and edges is None and can_accumulate(accumulator, ranges):
        found = running_states(kernels, accumulator, rows, ranges[0])
    elif whole or (edges is None and len(ranges) == 1 and ranges[0].are_disjoint()):
        distinct = len(call.arguments) if call.distinct else 0

        def aggregate_by_rows(first: int, last: int) -> plc.Column:
            some = select_frames(ranges, first, last)
            return kernels.concatenate(
                list(_aggregate_by_rows(kernels, accumulator, rows, some, distinct=distinct))
            )

        if is_string(rows[0]) and call.function == "string_agg":
            most = _joined_bytes(kernels, call, rows[0], ranges)
            return FrameValues(kernels, numbers, aggregate_by_rows, most)
        found = aggregate_by_rows(0, len(ranges[0].start))
    else:
        size = rows[0].size() + (0 if edges is None else 2)
        states = row_states(kernels, accumulator, rows, edges)
        tree = StateTree(Vectors(kernels), _States(kernels, accumulator), states, size)
        found = kernels.concatenate(list(tree.compute_frames(ranges, _FRAMES)))
    if of_ranks.strings is None:
        return ComputedValues(kernels, kernels.gather([found], numbers.column)[0])
    chosen = Vector(kernels, found).fill_nulls(of_ranks.strings.size())
    return RowValues(kernels, of_ranks.strings, chosen.take(numbers))


def _joined_bytes(
    kernels: Kernels, call: AggregateCall, strings: plc.Column, ranges: Sequence[Ranges[Vector]]
) -> Vector:
    """Bytes of each frame's strings and of what is between them, at most."""
    separator = None if call.parameter is None else call.parameter.value.as_py()
    lengths = string_lengths(kernels, [strings])
    frames = len(ranges[0].start)
    if separator is None or lengths is None:
        return Vector.full(kernels, 0, frames)
    return frame_sums((lengths + len(separator.encode())).totals(), ranges)


def _aggregate_by_rows(
    kernels: Kernels,
    accumulator: Accumulator,
    rows: StateColumns,
    ranges: Sequence[Ranges[Vector]],
    *,
    distinct: int,
) -> Generator[plc.Column, None, None]:
    """Each frame's rows as one group; the first `distinct` arguments, if any, once in each."""
    check_cancelled()
    total, frames = frame_sizes(ranges).total(), len(ranges[0].start)
    if total > _ROWS and frames > 1:
        middle = frames // 2
        for start, end in ((0, middle), (middle, frames)):
            half = select_frames(ranges, start, end)
            yield from _aggregate_by_rows(kernels, accumulator, rows, half, distinct=distinct)
        return
    places, owners = rows_of_frames(Vectors(kernels), ranges)
    if distinct:
        places, owners = _distinct_arguments(kernels, rows[:distinct], places, owners)
    codes = GroupCodes(owners.cast(_INT32).column, len(owners), frames)
    chosen = tuple(kernels.gather(rows, places.column))
    yield accumulator.final(kernels, accumulator.partial(kernels, chosen, codes))


@dataclass(frozen=True, slots=True)
class _States(States[Vector, StateColumns, plc.Column]):
    """Those of an accumulator."""

    kernels: Kernels
    accumulator: Accumulator

    def merge(self, states: StateColumns, owners: Vector, groups: int) -> StateColumns:
        codes = GroupCodes(owners.cast(_INT32).column, len(owners), groups)
        return self.accumulator.merge(self.kernels, states, codes)

    def take(self, states: StateColumns, places: Vector) -> StateColumns:
        return tuple(self.kernels.gather(states, places.column))

    def concatenate(self, pieces: Sequence[StateColumns]) -> StateColumns:
        return concatenate_state_columns(self.kernels, pieces)

    def final(self, states: StateColumns) -> plc.Column:
        return self.accumulator.final(self.kernels, states)


def _distinct_arguments(
    kernels: Kernels, arguments: StateColumns, places: Vector, owners: Vector
) -> tuple[Vector, Vector]:
    """The first of the rows of a group that have the same arguments."""
    chosen = kernels.gather(arguments, places.column)
    grouping = group_rows(kernels, [owners.column, *chosen], len(places))
    positions = kernels.positions(len(places))
    found = grouping.codes.reduce(kernels, positions, plc.aggregation.min(), _INT32)
    first = Vector(kernels, found)
    return places.take(first), owners.take(first)
