"""Columns of stored fragments as record batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.frames import make_batch

if TYPE_CHECKING:
    from bamquery.storage.fragments.reader import FragmentReader
    from bamquery.storage.readers.block_reader import ReadCounters


class CpuColumnReader:
    """See `bamquery.engine.device.ColumnReader`."""

    def __init__(self, reader: FragmentReader) -> None:
        self._reader = reader

    def stream(
        self, columns: Sequence[str], vectors: NDArray[np.int64], counters: ReadCounters
    ) -> pa.RecordBatch:
        """All rows of those vectors."""
        arrays = [self._reader.stream(column, vectors, counters) for column in columns]
        return make_batch(arrays, len(arrays[0]))

    def fetch_vectors(
        self, columns: Sequence[str], rows: NDArray[np.int64], counters: ReadCounters
    ) -> pa.RecordBatch:
        """Those rows, from whole vectors."""
        arrays = [self._reader.fetch_vectors(column, rows, counters) for column in columns]
        return make_batch(arrays, len(rows))

    def fetch_blocks(
        self, columns: Sequence[str], rows: NDArray[np.int64], counters: ReadCounters
    ) -> pa.RecordBatch:
        """Those rows, from the blocks that hold them."""
        arrays = [self._reader.fetch_blocks(column, rows, counters) for column in columns]
        return make_batch(arrays, len(rows))
