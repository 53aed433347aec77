"""first_value, last_value and nth_value: one row of each frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bamquery.engine.cpu.kernels import Column, boolean_values, compute, stored_values
from bamquery.engine.cpu.windows.call_values import RowValues
from bamquery.engine.cpu.windows.frames import Ranges
from bamquery.engine.cpu.windows.partitions import Positions


def framed_value(
    function: str, value: Column, number: Column | None, frames: Sequence[Ranges], *, ignore_nulls: bool
) -> RowValues:
    """The value on the first, last or given row of each frame; null where it has no such row."""
    kept = None
    if ignore_nulls and value.null_count:
        kept, frames = renumber_frames(boolean_values(compute("is_valid", value)), frames)
    sizes = [frame.end - frame.start for frame in frames]
    total: Positions = np.sum(sizes, axis=0)
    if function == "first_value":
        index = np.zeros(len(value), np.int64)
    elif function == "last_value":
        index = total - 1
    else:
        assert number is not None
        given = boolean_values(compute("is_valid", number))
        index = np.where(given, stored_values(number), 0) - 1
    there = (index >= 0) & (index < total)
    places = np.zeros(len(value), np.int64)
    for frame, size in zip(frames, sizes, strict=True):
        inside = (index >= 0) & (index < size)
        places = np.where(inside, frame.start + index, places)
        index = index - np.where(index >= 0, size, 0)
        index = np.where(inside, -1, index)
    if kept is not None:
        places = kept[np.where(there, places, 0)] if len(kept) else places
    return RowValues(value, places, there)


def renumber_frames(kept: np.ndarray, frames: Sequence[Ranges]) -> tuple[Positions, list[Ranges]]:
    """Positions of the rows that are kept, and the frames as positions among those."""
    before = np.concatenate([[0], np.cumsum(kept)])
    return np.flatnonzero(kept), [Ranges(before[frame.start], before[frame.end]) for frame in frames]
