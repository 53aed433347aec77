"""Aggregates over many overlapping ranges of rows: states of 1, 2, 4, ... rows, of which each range is made.

A segment tree, as in Leis et al., "Efficient Processing of Window Functions in Analytical SQL Queries"
(2015): a range of n rows is made of at most 2 log2(n) states, in the rows' order, with no state taken away
again, so infinities, NaN and (on one processor) rounding are those of the rows in the range.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar

from bamquery.engine.windows.ranges import Ranges, select_frames
from bamquery.engine.windows.rows import C
from bamquery.engine.windows.vectors import V, Vectors
from bamquery.statement_context.cancellation import check_cancelled

P = TypeVar("P")
"""The states of some rows, or of some ranges of them."""

_Picks: TypeAlias = tuple[int, V, V]
"""A level of the tree, positions in it, and the frame that each belongs to."""


class States(ABC, Generic[V, P, C]):
    """What a device does with the states of one aggregate."""

    @abstractmethod
    def merge(self, states: P, owners: V, groups: int) -> P:
        """The states of groups, each of those that it owns, in order."""

    @abstractmethod
    def take(self, states: P, places: V) -> P:
        """Those at positions."""

    @abstractmethod
    def concatenate(self, pieces: Sequence[P]) -> P:
        """The states of one piece after those of another."""

    @abstractmethod
    def final(self, states: P) -> C:
        """The aggregate's values.

        Raises:
            ExecutionError: one does not fit its type.
        """


class StateTree(Generic[V, P, C]):
    """The states over so many rows, from those of each."""

    def __init__(self, vectors: Vectors[V], states: States[V, P, C], rows: P, size: int) -> None:
        self._states = states
        self._levels = [rows]
        while size > 1:
            owners = vectors.positions(size) // 2
            size = (size + 1) // 2
            self._levels.append(states.merge(self._levels[-1], owners, size))
        self._vectors = vectors

    def compute_frames(self, frames: Sequence[Ranges[V]], at_once: int) -> Iterator[C]:
        """The aggregate's value for each frame, so many at once: between two such steps a query can stop.

        Raises:
            ExecutionError: a value does not fit its type.
        """
        count = len(frames[0].start)
        for start in range(0, count, at_once):
            check_cancelled()
            yield self._values(select_frames(frames, start, min(start + at_once, count)))

    def _values(self, frames: Sequence[Ranges[V]]) -> C:
        """For rows of all ranges, in order."""
        states = self._states
        picks = [pick for frame in frames for pick in self._picks(frame)]
        picks = [pick for pick in picks if len(pick[1])] or picks[:1]
        joined = states.concatenate([states.take(self._levels[level], places) for level, places, _ in picks])
        owners = self._vectors.concatenate([owners for _, _, owners in picks])
        return states.final(states.merge(joined, owners, len(frames[0].start)))

    def _picks(self, frame: Ranges[V]) -> list[_Picks[V]]:
        """States that make up each range, in order: ever larger ones from the left, then smaller ones."""
        low, high = frame.start, frame.end
        ascending: list[_Picks[V]] = []
        descending: list[_Picks[V]] = []
        for level in range(len(self._levels)):
            odd_start = (low < high) & (low % 2).equals(1)
            rows = odd_start.places()
            ascending.append((level, low.take(rows), rows))
            low += odd_start.numbers()
            odd_end = (low < high) & (high % 2).equals(1)
            high -= odd_end.numbers()
            rows = odd_end.places()
            descending.append((level, high.take(rows), rows))
            low, high = low // 2, high // 2
        return [*ascending, *reversed(descending)]
