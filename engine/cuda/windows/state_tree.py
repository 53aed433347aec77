"""Aggregates over many overlapping ranges of rows: states of 1, 2, 4, ... rows, of which each range is made.

A segment tree, as in Leis et al., "Efficient Processing of Window Functions in Analytical SQL Queries"
(2015): a range of n rows is made of at most 2 log2(n) states, in the rows' order, with no state taken away
again, so infinities and NaN are those of the rows in the range.
"""

from __future__ import annotations

from collections.abc import Sequence

import pylibcudf as plc
from pylibcudf.types import TypeId

from bamquery.engine.cuda.aggregates.accumulator import Accumulator, Parts, concatenate_parts
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.keys.grouping import GroupCodes
from bamquery.engine.cuda.vectors import Mask, Vector
from bamquery.engine.cuda.windows.frames import Ranges
from bamquery.engine.cuda.windows.running import Edges, row_states

_INT32 = plc.DataType(TypeId.INT32)
_Picks = tuple[int, Vector, Vector]
"""A level of the tree, positions in it, and the frame that each belongs to."""


class StateTree:
    """The states over the rows."""

    def __init__(
        self, kernels: Kernels, accumulator: Accumulator, rows: Parts, edges: Edges | None = None
    ) -> None:
        self._kernels = kernels
        self._accumulator = accumulator
        size = rows[0].size() + (0 if edges is None else 2)
        self._levels: list[Parts] = [row_states(kernels, accumulator, rows, edges)]
        while size > 1:
            owners = (Vector.positions(kernels, size) / 2).cast(_INT32)
            codes = GroupCodes(owners.column, size, (size + 1) // 2)
            size = codes.groups
            self._levels.append(accumulator.merge(kernels, self._levels[-1], codes))

    def answers(self, frames: Sequence[Ranges]) -> plc.Column:
        """The aggregate's value for each frame: for rows of all ranges, in order.

        Raises:
            ExecutionError: a value does not fit its type.
        """
        kernels = self._kernels
        picks = [pick for frame in frames for pick in self._picks(frame)]
        picks = [pick for pick in picks if len(pick[1])] or picks[:1]
        parts = concatenate_parts(
            kernels,
            [tuple(kernels.gather(self._levels[level], places.column)) for level, places, _ in picks],
        )
        owners = kernels.concatenate([owners.cast(_INT32).column for _, _, owners in picks])
        codes = GroupCodes(owners, owners.size(), len(frames[0].start))
        return self._accumulator.final(kernels, self._accumulator.merge(kernels, parts, codes))

    def _picks(self, frame: Ranges) -> list[_Picks]:
        """States that make up each range, in order: ever larger ones from the left, then smaller ones."""
        low, high = frame.start, frame.end
        ascending: list[_Picks] = []
        descending: list[_Picks] = []
        for level in range(len(self._levels)):
            odd_start = (low < high) & (low % 2).equals(1)
            ascending.append(_pick_states(level, low, odd_start))
            low += odd_start.numbers()
            odd_end = (low < high) & (high % 2).equals(1)
            descending.append(_pick_states(level, high - 1, odd_end))
            high -= odd_end.numbers()
            low, high = low / 2, high / 2
        return [*ascending, *reversed(descending)]


def _pick_states(level: int, places: Vector, chosen: Mask) -> _Picks:
    rows = chosen.places()
    return level, places.take(rows), rows
