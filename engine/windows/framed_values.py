"""first_value, last_value and nth_value: one row of each frame."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bamquery.engine.windows.ranges import Ranges, frame_sizes, renumber_frames
from bamquery.engine.windows.rows import A, C, WindowRows
from bamquery.engine.windows.vectors import V
from bamquery.plan.windows import WindowCall


def framed_value(rows: WindowRows[V, C, A], window: WindowCall, frames: Sequence[Ranges[V]]) -> A:
    """The value on the first, last or given row of each frame; null where it has no such row.

    Raises:
        ExecutionError: an argument cannot be computed.
    """
    value, *number = rows.evaluate(window.call.arguments)
    kept = None
    if window.ignore_nulls and rows.has_nulls(value):
        known = rows.valid(value)
        frames, kept = renumber_frames(known, frames), known.places()
    total = frame_sizes(frames)
    if window.call.function == "first_value":
        index = rows.vectors.full(0, len(total))
    elif window.call.function == "last_value":
        index = total - 1
    else:
        index = rows.numbers(number[0], 0) - 1
    there = (index >= 0) & (index < total)
    places = frames[0].start + index
    for before, frame in pairwise(frames):
        # Of a row in a range before, what is left is below zero.
        index -= before.sizes()
        places = (index >= 0).choose(frame.start + index, places)
    if kept is not None and len(kept):
        places = kept.take(there.choose(places, 0))
    return rows.values_at(value, places, there)
