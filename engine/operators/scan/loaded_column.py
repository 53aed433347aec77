"""A column that a scan has read, before it is part of a frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from bamquery.engine.device import Device, Frame
from bamquery.engine.operators.scan.fragment_columns import StoredValues
from bamquery.storage.readers.block_reader import ReadCounters


@dataclass(slots=True, eq=False)
class LoadedColumn(Generic[Frame]):
    """A column that was read: `values`, or rows of a device's `frame` of that column alone.

    `string_bytes`: of its rows, None where its frame is to be asked.
    """

    values: StoredValues | None
    counters: ReadCounters
    seconds: float
    string_bytes: int | None = None
    frame: Frame | None = None

    def as_frame(self, device: Device[Frame]) -> Frame:
        """The column as a frame."""
        if self.frame is None:
            assert self.values is not None
            self.frame = device.from_columns([self.values])
        return self.frame
