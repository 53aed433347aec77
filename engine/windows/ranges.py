"""Ranges of rows, which are what frames are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from bamquery.engine.windows.partitions import running_numbers
from bamquery.engine.windows.vectors import Mask, V, Vectors


@dataclass(frozen=True, slots=True)
class Ranges(Generic[V]):
    """Rows from `start` to before `end`, for each row; without any where they are equal."""

    start: V
    end: V

    def sizes(self) -> V:
        """How many rows each has."""
        return self.end - self.start

    def take(self, places: V) -> Ranges[V]:
        """Those of some rows."""
        return Ranges(self.start.take(places), self.end.take(places))

    def slice(self, start: int, end: int) -> Ranges[V]:
        """Those of the rows from `start` to before `end`."""
        return Ranges(self.start.slice(start, end), self.end.slice(start, end))

    def clip(self, rows: int) -> Ranges[V]:
        """What they have of so many rows, where they reach beyond them."""
        return Ranges(self.start.clip(0, rows), self.end.clip(0, rows))

    def among_states(self, rows: int) -> Ranges[V]:
        """As positions among states: that of all before the rows, the rows', that of all behind."""
        return Ranges(self.start.clip(-1, rows + 1) + 1, self.end.clip(-1, rows + 1) + 1)

    def are_disjoint(self) -> bool:
        """Whether no row is in two ranges, so that looking at whole ranges is the shortest way."""
        count = len(self.start)
        return count < 2 or not (self.start.slice(1, count) < self.end.slice(0, count - 1)).any()


def select_frames(frames: Sequence[Ranges[V]], start: int, end: int) -> list[Ranges[V]]:
    """The frames of the rows from `start` to before `end`."""
    return [frame.slice(start, end) for frame in frames]


def distinct_frames(frames: Sequence[Ranges[V]]) -> tuple[V, list[Ranges[V]]]:
    """Which frame each of at least one row has, and those frames: neighbours often share one."""
    changes, *others = (frame.start.changes() | frame.end.changes() for frame in frames)
    for more in others:
        changes |= more
    places = changes.places()
    return running_numbers(changes), [frame.take(places) for frame in frames]


def renumber_frames(kept: Mask[V], frames: Sequence[Ranges[V]]) -> list[Ranges[V]]:
    """The frames as positions among the rows that are kept."""
    return _renumber_ranges(kept.totals(), frames)


def renumber_states(vectors: Vectors[V], kept: Mask[V], frames: Sequence[Ranges[V]]) -> list[Ranges[V]]:
    """The same of frames that are positions among states, of which the first and the last are kept."""
    edge = vectors.full(1, 1)
    return _renumber_ranges(vectors.concatenate([edge, kept.numbers(), edge]).totals(), frames)


def _renumber_ranges(before: V, frames: Sequence[Ranges[V]]) -> list[Ranges[V]]:
    return [Ranges(before.take(frame.start), before.take(frame.end)) for frame in frames]


def frame_sums(totals: V, frames: Sequence[Ranges[V]]) -> V:
    """The sum of the rows' numbers in each frame, by their running totals."""
    found, *others = (totals.take(frame.end) - totals.take(frame.start) for frame in frames)
    for more in others:
        found += more
    return found


def frame_sizes(frames: Sequence[Ranges[V]]) -> V:
    """How many rows each frame has."""
    found, *others = (frame.sizes() for frame in frames)
    for more in others:
        found += more
    return found


def rows_of_frames(vectors: Vectors[V], frames: Sequence[Ranges[V]]) -> tuple[V, V]:
    """The rows of each frame, one frame's after another's, and the frame that each belongs to."""
    starts = vectors.interleave([frame.start for frame in frames])
    sizes = vectors.interleave([frame.sizes() for frame in frames])
    totals = sizes.totals()
    offsets = totals.slice(0, len(sizes))
    places = (starts - offsets).repeats(sizes)
    owners = (vectors.positions(len(sizes)) // len(frames)).repeats(sizes)
    return places + vectors.positions(len(places)), owners
