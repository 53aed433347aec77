"""Rows in the order of partitions, and where these begin."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Generic

from bamquery.engine.device import Device, Frame
from bamquery.engine.operators.base.row_changes import row_changes
from bamquery.plan.expressions import Expression


class PartitionStarts(Generic[Frame]):
    """Frames, none of them empty; an iterator of each with where the last partition begins that begins in it.

    That is None where the frame's rows are of the partition of the row before, and in the first frame of all
    rows where they are of one.
    """

    def __init__(self, device: Device[Frame], keys: Sequence[Expression], frames: Iterator[Frame]) -> None:
        self._device = device
        self._keys = tuple(keys)
        self._frames = frames
        self._again: Frame | None = None
        self._last: Frame | None = None  # the keys of the row before

    def __iter__(self) -> Iterator[tuple[Frame, int | None]]:
        return self

    def __next__(self) -> tuple[Frame, int | None]:
        frame = self._next_frame()
        values = self._device.evaluate(self._keys, frame)
        changes = row_changes(self._device, self._keys, self._last, values)
        self._last = self._device.slice(values, self._device.row_count(values) - 1, 1)
        return frame, int(changes[-1]) if len(changes) else None

    def rest_of_partition(self) -> Generator[Frame, None, None]:
        """The rows up to where the next partition begins; from there on the iterator goes on."""
        device = self._device
        while True:
            try:
                frame = self._next_frame()
            except StopIteration:
                return
            changes = row_changes(device, self._keys, self._last, device.evaluate(self._keys, frame))
            count = device.row_count(frame)
            end = int(changes[0]) if len(changes) else count
            if end:
                yield device.slice(frame, 0, end)
            if end < count:
                self._again = device.slice(frame, end, count - end)
                return

    def _next_frame(self) -> Frame:
        frame, self._again = self._again, None
        return next(self._frames) if frame is None else frame
