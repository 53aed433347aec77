"""Columns of stored fragments, read by the host and copied to the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cuda.device_memory import memory_errors
from bamquery.engine.cuda.frames import CudaFrame, make_frame
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.cuda.transfer.upload import upload

if TYPE_CHECKING:
    from bamquery.storage.fragments.reader import FragmentReader
    from bamquery.storage.readers.block_reader import ReadCounters


class CudaColumnReader:
    """See `bamquery.engine.device.ColumnReader`; for what the GPU does not fetch itself."""

    def __init__(self, session: CudaSession, reader: FragmentReader) -> None:
        self._session = session
        self._reader = reader

    def stream(self, columns: Sequence[str], vectors: NDArray[np.int64], counters: ReadCounters) -> CudaFrame:
        """All rows of those vectors."""
        return self._copy_arrays([self._reader.stream(column, vectors, counters) for column in columns])

    def fetch_vectors(
        self, columns: Sequence[str], rows: NDArray[np.int64], counters: ReadCounters
    ) -> CudaFrame:
        """Those rows, from whole vectors."""
        return self._copy_arrays([self._reader.fetch_vectors(column, rows, counters) for column in columns])

    def fetch_blocks(
        self, columns: Sequence[str], rows: NDArray[np.int64], counters: ReadCounters
    ) -> CudaFrame:
        """Those rows, from the blocks that hold them."""
        return self._copy_arrays([self._reader.fetch_blocks(column, rows, counters) for column in columns])

    def _copy_arrays(self, arrays: Sequence[pa.Array[Any]]) -> CudaFrame:
        self._session.enter()
        with memory_errors("a scan's columns", self._session.limit, sum(array.nbytes for array in arrays)):
            columns = [upload(self._session, array) for array in arrays]
        self._session.synchronize()  # before what was read from is let go of
        return make_frame(columns, len(arrays[0]))
