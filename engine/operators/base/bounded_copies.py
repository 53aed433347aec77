"""Rows that are copied by their positions, in portions of a bounded size: one row may be taken many times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.device import Device, Frame, HostPositions


class CopiedRows(Generic[Frame]):
    """Rows of a frame, of which copies will be made, and what a copy of each takes.

    Attributes:
        frame: the rows.
    """

    def __init__(self, device: Device[Frame], frame: Frame) -> None:
        self.frame = frame
        self._device = device
        self._width = device.row_width(frame)
        self._most = self._width + device.longest_string(frame)
        self._lengths: NDArray[np.uint32] | None = None

    def upper_bytes(self, count: int) -> int:
        """Bytes of so many copies, of whichever rows, at most."""
        return count * self._most

    def copy_sizes(self, positions: HostPositions) -> HostPositions:
        """Bytes of a copy of each of these rows; -1 stands for a row of nulls."""
        if self._most == self._width:
            return np.full(len(positions), self._width, np.int64)
        if self._lengths is None:  # two threads may do the same
            self._lengths = self._device.string_lengths(self.frame)
        lengths = self._lengths[positions].astype(np.int64)
        lengths[positions < 0] = 0
        return lengths + self._width


def portions_within(sides: Sequence[tuple[CopiedRows[Frame], HostPositions]], most: int) -> Iterator[slice]:
    """Which of some rows, copied side by side, are to be copied at once: no more than `most` bytes.

    Args:
        sides: rows and which of them, as many for each side.
        most: bytes of a portion; one row is one, whatever it takes.
    """
    count = len(sides[0][1])
    if sum(rows.upper_bytes(count) for rows, _ in sides) <= most or count <= 1:
        yield slice(0, count)
        return
    ends = np.cumsum(
        sum((rows.copy_sizes(positions) for rows, positions in sides), np.zeros(count, np.int64))
    )
    start = 0
    while start < count:
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + most, side="right")), start + 1)
        yield slice(start, stop)
        start = stop
