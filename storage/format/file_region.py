"""Files of aligned buffers that are written as their bytes come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bamquery.storage.format.layout import Extent, align

if TYPE_CHECKING:
    from bamquery.storage.files.filesystem import Buffer, WritableFile


class FileRegion:
    """Consecutive bytes of a file from an aligned offset on, zero-padded to the next aligned one."""

    def __init__(self, file: WritableFile, start: int) -> None:
        assert start == align(start), start
        self._file = file
        self._start = start
        self._end = start

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Write behind what was written before."""
        self._file.write_at(self._end, buffers)
        self._end += sum(memoryview(buffer).nbytes for buffer in buffers)

    def finish(self) -> Extent:
        """Pad, and say which bytes were written; the padding is not among them."""
        extent = Extent(self._start, self._end - self._start)
        padding = align(extent.end) - extent.end
        if padding:
            self._file.write_at(extent.end, [bytes(padding)])
        return extent


@dataclass
class FileTail:
    """The end of a file that is being written.

    Attributes:
        file: it.
        position: the first byte that is free.
    """

    file: WritableFile
    position: int = 0

    def append(self, buffers: Sequence[Buffer]) -> Extent:
        """Write buffers end to end from the next aligned position on; what comes then is aligned, too."""
        region = FileRegion(self.file, align(self.position))
        region.append(buffers)
        extent = region.finish()
        self.position = align(extent.end)
        return extent
