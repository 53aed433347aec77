"""Aggregates over the rows of each frame, by the shortest way that the frames allow."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Final

import pylibcudf as plc
from pylibcudf.types import TypeId

from bamquery.engine.cuda.aggregates.accumulator import Accumulator, Parts
from bamquery.engine.cuda.aggregates.aggregation import call_inputs
from bamquery.engine.cuda.aggregates.registry import accumulator_of
from bamquery.engine.cuda.aggregates.value_lists import HolisticAggregate
from bamquery.engine.cuda.expressions.evaluation import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.keys.grouping import GroupCodes, group_rows
from bamquery.engine.cuda.keys.portions import is_text, text_lengths
from bamquery.engine.cuda.vectors import Mask, Vector
from bamquery.engine.cuda.windows.answers import Answer, Chosen, Known, OfFrames
from bamquery.engine.cuda.windows.framed_values import renumber_frames
from bamquery.engine.cuda.windows.frames import Ranges
from bamquery.engine.cuda.windows.running import (
    can_accumulate,
    difference_states,
    running_states,
    state_of_none,
)
from bamquery.engine.cuda.windows.state_tree import StateTree
from bamquery.engine.cuda.windows.string_ranks import Outside, over_ranks
from bamquery.plan.expressions import AggregateCall
from bamquery.statement_context.cancellation import check_cancelled

_FRAMES: Final = 1 << 18
"""Frames computed at once from a tree: between two such steps a query can stop."""
_ROWS: Final = 1 << 23
"""Rows of frames that are looked at at once, where each frame is looked at as a whole."""
_INT32 = plc.DataType(TypeId.INT32)


def framed_aggregate(
    kernels: Kernels,
    call: AggregateCall,
    frame: CudaFrame,
    ranges: Sequence[Ranges],
    *,
    outside: Outside | None = None,
) -> Answer:
    """The aggregate of each row's frame.

    With `outside`, frames may begin before the rows and end behind them: there these states are.

    Raises:
        ExecutionError: an argument cannot be computed, or a value does not fit its type.
    """
    of_ranks = over_ranks(kernels, call, frame, outside)
    call, frame, outside = of_ranks.call, of_ranks.frame, of_ranks.outside
    accumulator = accumulator_of(replace(call, distinct=False))
    whole = call.distinct or isinstance(accumulator, HolisticAggregate)
    among_states = outside is not None and not whole
    if outside is not None:
        ranges = [
            _state_positions(one, frame.rows) if among_states else one.clip(frame.rows) for one in ranges
        ]
    if call.filter is not None:
        (column,) = evaluate_columns(kernels, [call.filter], frame)
        mask = Mask(kernels, kernels.fill_null(column))
        ranges = renumber_frames(_with_edges(kernels, mask) if among_states else mask, ranges)
        frame = kernels.filter_frame(frame, mask.column)
    rows = call_inputs(kernels, call, frame)
    numbers, ranges = _distinct_frames(kernels, ranges)
    edges = None
    if outside is not None and not whole:
        nothing = state_of_none(kernels, accumulator, rows)
        before, after = (nothing if state is None else state.parts[0] for state in outside)
        edges = (before, after)
    if not whole and accumulator.exact:
        found = difference_states(kernels, accumulator, rows, ranges, edges)
    elif not whole and edges is None and can_accumulate(accumulator, ranges):
        found = running_states(kernels, accumulator, rows, ranges[0])
    elif whole or (edges is None and len(ranges) == 1 and _are_disjoint(ranges[0])):
        distinct = len(call.arguments) if call.distinct else 0

        def of_frames(first: int, last: int) -> plc.Column:
            some = [one.slice(first, last) for one in ranges]
            return kernels.concatenate(
                list(_aggregate_by_rows(kernels, accumulator, rows, some, distinct=distinct))
            )

        if is_text(rows[0]) and call.function == "string_agg":
            most = _joined_bytes(kernels, call, rows[0], ranges)
            return OfFrames(kernels, numbers, of_frames, most)
        found = of_frames(0, len(ranges[0].start))
    else:
        tree = StateTree(kernels, accumulator, rows, edges)
        pieces = []
        count = len(ranges[0].start)
        for start in range(0, count, _FRAMES):
            check_cancelled()
            pieces.append(tree.answers([r.slice(start, min(start + _FRAMES, count)) for r in ranges]))
        found = kernels.concatenate(pieces)
    if of_ranks.texts is None:
        return Known(kernels, kernels.gather([found], numbers.column)[0])
    chosen = Vector(kernels, found).fill_nulls(of_ranks.texts.size())
    return Chosen(kernels, of_ranks.texts, chosen.take(numbers))


def _joined_bytes(
    kernels: Kernels, call: AggregateCall, texts: plc.Column, ranges: Sequence[Ranges]
) -> Vector:
    """Bytes of each frame's texts and of what is between them, at most."""
    separator = None if call.parameter is None else call.parameter.value.as_py()
    lengths = text_lengths(kernels, [texts])
    frames = len(ranges[0].start)
    if separator is None or lengths is None:
        return Vector.full(kernels, 0, frames)
    totals = (lengths + len(separator.encode())).totals()
    found = Vector.full(kernels, 0, frames)
    for one in ranges:
        found += totals.take(one.end) - totals.take(one.start)
    return found


def _state_positions(ranges: Ranges, rows: int) -> Ranges:
    """Frames as places among states: that of all before the rows, the rows', that of all behind."""
    start, end = (edges.clip(-1, rows + 1) + 1 for edges in (ranges.start, ranges.end))
    return Ranges(start, end.maximum(1))


def _with_edges(kernels: Kernels, mask: Mask) -> Mask:
    edge = Mask.full(kernels, True, 1).column
    return Mask(kernels, kernels.concatenate([edge, mask.column, edge]))


def _distinct_frames(kernels: Kernels, ranges: Sequence[Ranges]) -> tuple[Vector, list[Ranges]]:
    """Which frame each row has, and those frames: neighbours often share one."""
    rows = len(ranges[0].start)
    first = Mask.full(kernels, True, 1)
    if rows == 1:
        return Vector.full(kernels, 0, 1), list(ranges)
    changed = Mask.full(kernels, False, rows - 1)
    for one in ranges:
        for edges in (one.start, one.end):
            changed |= edges.slice(1, rows).differs(edges.slice(0, rows - 1))
    changes = Mask(kernels, kernels.concatenate([first.column, changed.column]))
    places = changes.places()
    totals = changes.numbers().totals()
    return totals.slice(1, rows + 1) - 1, [one.take(places) for one in ranges]


def _are_disjoint(ranges: Ranges) -> bool:
    """Whether no row is in two frames, so that looking at whole frames is the shortest way."""
    count = len(ranges.start)
    if count < 2:
        return True
    return not (ranges.start.slice(1, count) < ranges.end.slice(0, count - 1)).any()


def _aggregate_by_rows(
    kernels: Kernels,
    accumulator: Accumulator,
    rows: Parts,
    ranges: Sequence[Ranges],
    *,
    distinct: int,
) -> Generator[plc.Column, None, None]:
    """Each frame's rows as one group; the first `distinct` arguments, if any, once in each."""
    check_cancelled()
    starts = _side_by_side(kernels, [one.start for one in ranges])
    sizes = _side_by_side(kernels, [one.sizes() for one in ranges])
    total, frames = sizes.total(), len(ranges[0].start)
    if total > _ROWS and frames > 1:
        middle = frames // 2
        for start, end in ((0, middle), (middle, frames)):
            half = [one.slice(start, end) for one in ranges]
            yield from _aggregate_by_rows(kernels, accumulator, rows, half, distinct=distinct)
        return
    offsets = sizes.totals().slice(0, len(sizes))
    places = (starts - offsets).repeats(sizes) + Vector.positions(kernels, total)
    owners = (Vector.positions(kernels, len(sizes)) / len(ranges)).repeats(sizes)
    if distinct:
        places, owners = _once(kernels, rows[:distinct], places, owners)
    codes = GroupCodes(owners.cast(_INT32).column, len(owners), frames)
    chosen = tuple(kernels.gather(rows, places.column))
    yield accumulator.final(kernels, accumulator.partial(kernels, chosen, codes))


def _side_by_side(kernels: Kernels, vectors: Sequence[Vector]) -> Vector:
    """The first number of each, the second of each, ..."""
    if len(vectors) == 1:
        return vectors[0]
    table = plc.Table([vector.column for vector in vectors])
    return Vector(kernels, plc.reshape.interleave_columns(table, stream=kernels.stream, mr=kernels.memory))


def _once(kernels: Kernels, arguments: Parts, places: Vector, owners: Vector) -> tuple[Vector, Vector]:
    """The first of the rows of a group that have the same arguments."""
    chosen = kernels.gather(arguments, places.column)
    grouping = group_rows(kernels, [owners.column, *chosen], len(places))
    positions = kernels.positions(len(places))
    found = grouping.codes.reduce(kernels, positions, plc.aggregation.min(), _INT32)
    first = Vector(kernels, found)
    return places.take(first), owners.take(first)
