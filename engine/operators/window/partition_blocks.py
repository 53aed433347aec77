"""One partition's rows in order, cut into blocks that fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np

from bamquery.engine.device import Device, Frame
from bamquery.engine.operators.base.row_changes import row_changes
from bamquery.plan.expressions import Expression


@dataclass(frozen=True, slots=True)
class PartitionBlock(Generic[Frame]):
    """Some rows of a partition: whole groups of peers, or a piece of one group that is larger than a block.

    Attributes:
        groups: groups of peers that begin here.
        continues: whether the first row is a peer of the row before.
        piece: whether the rows are all peers, and may have more of them before and behind.
    """

    frame: Frame
    rows: int
    groups: int = 0
    continues: bool = False
    piece: bool = False


class BlockCutter(Generic[Frame]):
    """Cuts rows into blocks.

    Args:
        order: what peers agree in, of nothing all rows do; None: it does not matter who is a peer.
        enough: whether so many rows, of so many bytes, make a block.
        too_large: whether they do not make one, and have to be pieces, where they are peers.
    """

    def __init__(
        self,
        device: Device[Frame],
        order: Sequence[Expression] | None,
        enough: Callable[[int, int], bool],
        too_large: Callable[[int, int], bool],
    ) -> None:
        self._device = device
        self._order = order
        self._enough = enough
        self._too_large = too_large
        self._held: list[Frame] = []
        self._rows = 0
        self._starts = np.zeros(0, np.int64)  # of groups; rows before them are of one given out in part
        self._begun = False
        self._last: Frame | None = None  # the order's values in the row before
        self.bytes = 0
        """That the rows held take."""

    def blocks(self, frames: Iterable[Frame]) -> Generator[PartitionBlock[Frame], None, None]:
        """All rows of frames, none of which is empty."""
        for frame in frames:
            self._add(frame)
            if self._enough(self._rows, self.bytes):
                yield from self._cut(final=False)
        yield from self._cut(final=True)

    def _add(self, frame: Frame) -> None:
        device, count = self._device, self._device.row_count(frame)
        if self._order is not None:
            begins = np.zeros(0, np.int64) if self._begun else np.zeros(1, np.int64)
            self._begun = True
            if self._order:
                values = device.evaluate(self._order, frame)
                changes = row_changes(device, self._order, self._last, values)
                begins = np.concatenate([begins, changes])
                self._last = device.slice(values, count - 1, 1)
            self._starts = np.concatenate([self._starts, begins + self._rows])
        self._held.append(frame)
        self._rows += count
        self.bytes += device.nbytes(frame)

    def _cut(self, *, final: bool) -> Generator[PartitionBlock[Frame], None, None]:
        if not self._rows:
            return
        rows, starts = self._rows, self._starts
        frame = self._device.concatenate(self._held)
        self._held = []
        if self._order is None:
            self._keep(frame, rows)
            yield PartitionBlock(frame, rows)
            return
        begin = int(starts[0]) if len(starts) else rows
        end = rows if final or begin == rows else int(starts[-1])
        piece = end == begin == 0  # all of it is one group, and more of it may come
        if piece and self._too_large(rows, self.bytes):
            end = rows
        groups = int(((begin <= starts) & (starts < end)).sum())
        self._keep(frame, end)
        if begin:
            yield PartitionBlock(self._device.slice(frame, 0, begin), begin, continues=True, piece=True)
        if begin < end:
            yield PartitionBlock(
                self._device.slice(frame, begin, end - begin), end - begin, groups, piece=piece
            )

    def _keep(self, frame: Frame, begin: int) -> None:
        """Hold the rows from one on."""
        left = self._rows - begin
        rest = self._device.slice(frame, begin, left)
        self._held = [rest] if left else []
        self._rows, self.bytes = left, self._device.nbytes(rest) if left else 0
        self._starts = self._starts[self._starts >= begin] - begin
