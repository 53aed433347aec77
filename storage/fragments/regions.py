"""Where a column's bytes go as they come: into its file, or into memory until their place is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from bamquery.storage.files.buffers import view
from bamquery.storage.files.filesystem import Buffer, WritableFile
from bamquery.storage.format.file_region import FileRegion
from bamquery.storage.format.layout import Extent, align


class Region(Protocol):
    """Bytes that lie end to end."""

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Add these, which are the caller's again afterwards."""
        ...

    def place(self, file: WritableFile, start: int) -> Extent:
        """Where they are in the file, padded: what is not there yet is written from `start` on."""
        ...


class ColumnSpace(Protocol):
    """Makes the regions of one column."""

    @property
    def held_bytes(self) -> int:
        """Of memory that all of them take."""
        ...

    def region(self, behind: int = 0) -> Region:
        """A region; `behind`: bytes a row, and one row more, of the region that it follows."""
        ...


class FileSpace:
    """From an aligned offset of a file on, for a column of so many rows."""

    held_bytes = 0

    def __init__(self, file: WritableFile, start: int, rows: int) -> None:
        self._file = file
        self._start = start
        self._rows = rows

    def region(self, behind: int = 0) -> Region:
        """See `ColumnSpace.region`."""
        return _FileBytes(self._file, align(self._start + (behind * (self._rows + 1) if behind else 0)))


class MemorySpace:
    """Memory, for a column of which more may come."""

    def __init__(self) -> None:
        self._regions: list[_MemoryBytes] = []

    @property
    def held_bytes(self) -> int:
        """See `ColumnSpace.held_bytes`."""
        return sum(region.size for region in self._regions)

    def region(self, behind: int = 0) -> Region:
        """See `ColumnSpace.region`."""
        made = _MemoryBytes()
        self._regions.append(made)
        return made


class _FileBytes:
    """In the file as soon as they come."""

    def __init__(self, file: WritableFile, start: int) -> None:
        self._region = FileRegion(file, start)

    def append(self, buffers: Sequence[Buffer]) -> None:
        self._region.append(buffers)

    def place(self, file: WritableFile, start: int) -> Extent:
        return self._region.finish()


class _MemoryBytes:
    """Pieces, each of which was copied."""

    def __init__(self) -> None:
        self._pieces: list[memoryview] = []
        self.size = 0

    def append(self, buffers: Sequence[Buffer]) -> None:
        for buffer in buffers:
            if memoryview(buffer).nbytes:
                piece = view(np.frombuffer(memoryview(buffer), np.uint8).copy())  # without Python's lock
                self._pieces.append(piece)
                self.size += piece.nbytes

    def place(self, file: WritableFile, start: int) -> Extent:
        region = FileRegion(file, start)
        pieces, self._pieces = self._pieces, []
        self.size = 0
        region.append(pieces)
        return region.finish()
