"""Columns of stored fragments as frames of a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.device import Device, Frame
from bamquery.storage.fragments.reader import FragmentReader
from bamquery.storage.readers.block_reader import ReadCounters


class FragmentColumns(Generic[Frame]):
    """One fragment's columns, read by the host, as frames of the columns asked for, in order.

    Row ids are ascending, unique and relative to the fragment; see `storage.fragments.reader`.
    """

    def __init__(self, device: Device[Frame], reader: FragmentReader) -> None:
        self._device = device
        self._reader = reader

    def stream(self, columns: Sequence[str], vectors: NDArray[np.int64], counters: ReadCounters) -> Frame:
        """All rows of those vectors, in large requests, checksums verified."""
        read = self._reader.stream
        return self._device.from_columns([read(column, vectors, counters) for column in columns])

    def fetch_vectors(self, columns: Sequence[str], rows: NDArray[np.int64], counters: ReadCounters) -> Frame:
        """Those rows; the vectors that hold them are read whole and verified."""
        read = self._reader.fetch_vectors
        return self._device.from_columns([read(column, rows, counters) for column in columns])

    def fetch_blocks(self, columns: Sequence[str], rows: NDArray[np.int64], counters: ReadCounters) -> Frame:
        """Those rows; only the blocks that hold them are read, which cannot be verified."""
        read = self._reader.fetch_blocks
        return self._device.from_columns([read(column, rows, counters) for column in columns])
