"""first_value, last_value and nth_value: one row of each frame."""

from __future__ import annotations

from collections.abc import Sequence

import pylibcudf as plc

from bamquery.engine.cuda.kernels import INT64, Kernels
from bamquery.engine.cuda.vectors import Mask, Vector
from bamquery.engine.cuda.windows.answers import Chosen
from bamquery.engine.cuda.windows.frames import Ranges


def framed_value(
    kernels: Kernels,
    function: str,
    value: plc.Column,
    number: plc.Column | None,
    frames: Sequence[Ranges],
    *,
    ignore_nulls: bool,
) -> Chosen:
    """The value on the first, last or given row of each frame; null where it has no such row."""
    if ignore_nulls and value.null_count():
        known = Mask.from_validity(kernels, value)
        frames = renumber_frames(known, frames)
        (value,) = kernels.keep([value], known.column)
    sizes = [frame.sizes() for frame in frames]
    total = sizes[0]
    for size in sizes[1:]:
        total += size
    count = len(total)
    if function == "first_value":
        index = Vector.full(kernels, 0, count)
    elif function == "last_value":
        index = total - 1
    else:
        assert number is not None
        index = Vector(kernels, kernels.convert(number, INT64)).fill_nulls(0) - 1
    there = (index >= 0) & (index < total)
    places = Vector.full(kernels, value.size(), count)
    for frame, size in zip(frames, sizes, strict=True):
        inside = there & (index >= 0) & (index < size)
        places = inside.choose(frame.start + index, places)
        # Behind the range it is found in, an index is below zero.
        index = inside.choose(Vector.full(kernels, -1, count), index - size)
    return Chosen(kernels, value, places)


def renumber_frames(kept: Mask, frames: Sequence[Ranges]) -> list[Ranges]:
    """The frames as positions among the rows that are kept."""
    before = kept.numbers().totals()
    return [Ranges(before.take(frame.start), before.take(frame.end)) for frame in frames]
