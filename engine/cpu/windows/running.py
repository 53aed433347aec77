"""Aggregates over frames in one pass, for those whose states allow it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.accumulator import Accumulator, StateColumns, concatenate_state_columns
from bamquery.engine.cpu.frames import concatenate_columns
from bamquery.engine.cpu.kernels import Column
from bamquery.engine.cpu.vectors import Vector
from bamquery.engine.windows.ranges import Ranges, frame_sums, select_frames
from bamquery.statement_context.cancellation import check_cancelled

Edges: TypeAlias = tuple[StateColumns, StateColumns]
"""One state of what comes before the rows, and one of what comes after; positions count from the first."""

_ROWS: Final = 1 << 22
"""Answers that are written between two questions whether to go on."""
_STATES: Final = 1 << 15
"""Rows whose states are there at once where only their totals are kept: states are far larger than rows."""
_ROWS_A_START: Final = 256
"""Rows for each start of a frame from which a pass over each start's rows beats a tree over all."""


def row_states(accumulator: Accumulator, rows: Column, edges: Edges | None = None) -> StateColumns:
    """The state of each row; with edges, before them that of what comes before, and behind them the other."""
    check_cancelled()
    states = accumulator.partial(rows, np.arange(len(rows)), len(rows))
    check_cancelled()
    if edges is None:
        return states
    before, after = edges
    return tuple(concatenate_state_columns(three) for three in zip(before, states, after, strict=True))


def difference_states(
    accumulator: Accumulator, rows: Column, frames: Sequence[Ranges[Vector]], edges: Edges | None = None
) -> Column:
    """Each frame's state as the difference of two running totals: for exact states only."""
    count = len(frames[0].start)
    totals = _running_totals(accumulator, rows, edges)
    values: list[Column] = []
    for begin in range(0, count, _STATES):
        own = select_frames(frames, begin, min(begin + _STATES, count))
        columns = tuple(
            found > 0 if is_flag else found
            for found, is_flag in ((frame_sums(total, own).values, is_flag) for total, is_flag in totals)
        )
        size = len(own[0].start)
        # Merging each with nothing brings large states into their form.
        values.append(accumulator.final(accumulator.merge(columns, np.arange(size), size)))
    return concatenate_columns(values)


def _running_totals(accumulator: Accumulator, rows: Column, edges: Edges | None) -> list[tuple[Vector, bool]]:
    """Of each state column the sums of none, the first, the first two, ...; and whether it is a flag.

    Numbers past 64 bits go around, as do their differences.
    """
    count = len(rows) + (0 if edges is None else 2)
    totals: list[NDArray[np.int64]] = []
    flags: list[bool] = []
    done = 0
    for states in _states_by_portions(accumulator, rows, edges):
        columns = [np.asarray(column) for column in states]
        if not totals:
            totals = [np.zeros(count + 1, np.int64) for _ in columns]
            flags = [column.dtype == np.bool_ for column in columns]
        size = len(columns[0])
        for total, column in zip(totals, columns, strict=True):
            sums = total[done + 1 : done + 1 + size]
            np.cumsum(column, dtype=np.int64, out=sums)
            sums += total[done]
        done += size
    return list(zip(map(Vector, totals), flags, strict=True))


def _states_by_portions(
    accumulator: Accumulator, rows: Column, edges: Edges | None
) -> Iterator[StateColumns]:
    """The states of `row_states`, of some rows at a time."""
    if edges is not None:
        yield edges[0]
    for begin in range(0, max(len(rows), 1), _STATES):
        yield row_states(accumulator, rows.slice(begin, _STATES))
    if edges is not None:
        yield edges[1]


def can_accumulate(accumulator: Accumulator, frames: Sequence[Ranges[Vector]]) -> bool:
    """Whether frames grow from a few starts, and the states can be added up as they do."""
    if not accumulator.scans or len(frames) != 1:
        return False
    (frame,) = frames
    start, end = frame.start.values, frame.end.values
    starts = int((start[1:] != start[:-1]).sum()) + 1
    grows = bool((start[1:] >= start[:-1]).all() and (end[1:] >= end[:-1]).all())
    return grows and starts * _ROWS_A_START <= len(start)


def running_states(
    accumulator: Accumulator, rows: Column, frame: Ranges[Vector], edges: Edges | None = None
) -> Column:
    """Each frame's state as what its start's rows have come to so far."""
    states = [np.asarray(column) for column in row_states(accumulator, rows, edges)]
    nothing = [np.asarray(column) for column in state_of_none(accumulator, rows)]
    starts, ends = frame.start.values, frame.end.values
    filled = starts < ends
    first = frame.start.changes().places().values
    last = np.append(first[1:], len(starts))
    found: list[NDArray[Any]] = []
    for state, empty, scan in zip(states, nothing, accumulator.scans, strict=True):
        own = np.empty(len(filled), state.dtype)
        own[:] = empty[0]
        with np.errstate(all="ignore"):
            for begin, end in zip(first.tolist(), last.tolist(), strict=True):
                low, high = int(starts[begin]), int(ends[end - 1])
                so_far = scan.accumulate(state[low:high])
                for place in range(begin, end, _ROWS):
                    check_cancelled()
                    piece = slice(place, min(place + _ROWS, end))
                    inside = filled[piece]
                    own[piece][inside] = so_far[ends[piece][inside] - 1 - low]
        found.append(own)
    return accumulator.final(tuple(found))


def state_of_none(accumulator: Accumulator, rows: Column) -> StateColumns:
    """The state of no rows of such a column."""
    return accumulator.partial(rows.slice(0, 0), np.arange(0), 1)
