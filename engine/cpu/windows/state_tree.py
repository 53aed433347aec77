"""Aggregates over many overlapping ranges of rows: states of 1, 2, 4, ... rows, of which each range is made.

A segment tree, as in Leis et al., "Efficient Processing of Window Functions in Analytical SQL Queries"
(2015): a range of n rows is made of at most 2 log2(n) states, in the rows' order, with no state taken away
again, so infinities, NaN and rounding are those of the rows in the range.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.accumulator import Accumulator, Part, StateColumns, concatenate_parts
from bamquery.engine.cpu.kernels import Column, take
from bamquery.engine.cpu.windows.frames import Ranges
from bamquery.engine.cpu.windows.partitions import Positions
from bamquery.engine.cpu.windows.running import Edges, row_states

_Picks = tuple[int, Positions, Positions]
"""A level of the tree, positions in it, and the frame that each belongs to."""


class StateTree:
    """The states over the rows of a column."""

    def __init__(self, accumulator: Accumulator, column: Column, edges: Edges | None = None) -> None:
        self._accumulator = accumulator
        size = len(column) + (0 if edges is None else 2)
        self._levels: list[StateColumns] = [row_states(accumulator, column, edges)]
        while size > 1:
            codes = np.arange(size) // 2
            size = (size + 1) // 2
            self._levels.append(accumulator.merge(self._levels[-1], codes, size))

    def answers(self, frames: Sequence[Ranges]) -> Column:
        """The aggregate's value for each frame: for rows of all ranges, in order.

        Raises:
            ExecutionError: a value does not fit its type.
        """
        picks = [pick for frame in frames for pick in self._picks(frame)]
        codes = np.concatenate([owners for _, _, owners in picks])
        width = len(self._levels[0])
        parts = tuple(
            concatenate_parts([_take_part(self._levels[level][i], places) for level, places, _ in picks])
            for i in range(width)
        )
        count = len(frames[0].start)
        return self._accumulator.final(self._accumulator.merge(parts, codes, count))

    def _picks(self, frame: Ranges) -> list[_Picks]:
        """States that make up each range, in order: ever larger ones from the left, then smaller ones."""
        low, high = frame.start.copy(), frame.end.copy()
        rows = np.arange(len(low))
        ascending: list[_Picks] = []
        descending: list[_Picks] = []
        for level in range(len(self._levels)):
            open_ = low < high
            ascending.append(_pick_states(level, low, rows, open_ & (low % 2 == 1)))
            low = low + (open_ & (low % 2 == 1))
            open_ = low < high
            odd_end = open_ & (high % 2 == 1)
            descending.append(_pick_states(level, high - 1, rows, odd_end))
            high = high - odd_end
            low, high = low // 2, high // 2
        return [*ascending, *reversed(descending)]


def _pick_states(level: int, places: Positions, rows: Positions, chosen: NDArray[np.bool_]) -> _Picks:
    return level, places[chosen], rows[chosen]


def _take_part(part: Part, places: Positions) -> Part:
    return take(part, places) if isinstance(part, pa.Array) else part[places]
