"""Aggregates over frames in one pass, for those whose states allow it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.groupby import GroupBy, GroupByRequest
from pylibcudf.types import NullPolicy, Sorted, TypeId

from bamquery.engine.cuda.aggregates.accumulator import Accumulator, StateColumns, concatenate_state_columns
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.keys.grouping import GroupCodes
from bamquery.engine.cuda.vectors import Mask, Vector
from bamquery.engine.windows.ranges import Ranges, frame_sums, renumber_frames

_INT32 = plc.DataType(TypeId.INT32)
Edges: TypeAlias = tuple[StateColumns, StateColumns]
"""One state of what comes before the rows, and one of what comes after; positions count from the first."""


def each_row(kernels: Kernels, rows: int) -> GroupCodes:
    """Every row as a group of its own."""
    return GroupCodes(kernels.positions(rows), rows, rows)


def row_states(
    kernels: Kernels, accumulator: Accumulator, rows: StateColumns, edges: Edges | None = None
) -> StateColumns:
    """The state of each row; with edges, before them that of what comes before, and behind them the other."""
    states = accumulator.partial(kernels, rows, each_row(kernels, rows[0].size()))
    return states if edges is None else concatenate_state_columns(kernels, [edges[0], states, edges[1]])


def state_of_none(kernels: Kernels, accumulator: Accumulator, rows: StateColumns) -> StateColumns:
    """The state of no rows of such columns."""
    none = tuple(kernels.slice_column(column, 0, 0) for column in rows)
    return accumulator.partial(kernels, none, GroupCodes(None, 0, 1))


def difference_states(
    kernels: Kernels,
    accumulator: Accumulator,
    rows: StateColumns,
    frames: Sequence[Ranges[Vector]],
    edges: Edges | None = None,
) -> plc.Column:
    """Each frame's state as the difference of two running totals: for exact states only."""
    states = row_states(kernels, accumulator, rows, edges)
    nothing = state_of_none(kernels, accumulator, rows)
    totals: list[plc.Column] = []
    for state, empty in zip(states, nothing, strict=True):
        own = frame_sums(Vector(kernels, state).fill_nulls(0).totals(), frames)
        if empty.null_count():  # so is the state of a frame without values
            values = frame_sums(Mask.from_validity(kernels, state).totals(), frames)
            totals.append(kernels.where((values > 0).column, own.column, kernels.null(pa.int64())))
        else:
            totals.append(own.column)
    # Merging each with nothing brings large states into their form.
    alone = each_row(kernels, len(frames[0].start))
    return accumulator.final(kernels, accumulator.merge(kernels, tuple(totals), alone))


def can_accumulate(accumulator: Accumulator, frames: Sequence[Ranges[Vector]]) -> bool:
    """Whether frames grow, each from the row where others end, and the states can be added up as they do."""
    if not accumulator.scans or len(frames) != 1:
        return False
    count = len(frames[0].start)
    if count < 2:
        return True
    here, after = frames[0].slice(0, count - 1), frames[0].slice(1, count)
    grows = (after.end >= here.end) & (after.start.equals(here.start) | (after.start >= here.end))
    return not (~grows).any()


def running_states(
    kernels: Kernels, accumulator: Accumulator, rows: StateColumns, frame: Ranges[Vector]
) -> plc.Column:
    """Each frame's state as what its start's rows have come to so far; of frames that have rows."""
    (column,) = rows
    if column.null_count():
        known = Mask.from_validity(kernels, column)
        (frame,) = renumber_frames(known, [frame])
        (column,) = kernels.keep([column], known.column)
    size = column.size()
    states = accumulator.partial(kernels, (column,), each_row(kernels, size))
    filled = frame.start < frame.end
    places = filled.choose(frame.end - 1, size).column
    if size:
        keys = plc.Table([_owners(kernels, frame.take(filled.places()), size)])
        grouping = GroupBy(keys, NullPolicy.EXCLUDE, Sorted.YES)
        requests = [
            GroupByRequest(state, [scan]) for state, scan in zip(states, accumulator.scans, strict=True)
        ]
        _, results = grouping.scan(requests, stream=kernels.stream, mr=kernels.memory)
        states = tuple(table.columns()[0] for table in results)
    return accumulator.final(kernels, tuple(kernels.gather(states, places, nullify=True)))


def _owners(kernels: Kernels, frame: Ranges[Vector], rows: int) -> plc.Column:
    """For each row the number of starts up to it."""
    marks = Vector.full(kernels, 0, rows)
    if len(frame.start):
        ones = Vector.full(kernels, 1, len(frame.start))
        places = kernels.convert(frame.start.column, _INT32)
        marks = Vector(kernels, kernels.scatter(ones.column, places, marks.column))
    return marks.totals().slice(1, rows + 1).cast(_INT32).column
