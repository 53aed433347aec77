"""Plain strings and binary: 64-bit offsets in one buffer, bytes in another."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.encodings.encoding import BufferShape, ColumnShape, Footprint
from bamquery.storage.encodings.plain import ColumnPlace, Validity
from bamquery.storage.files.buffers import view
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.readers.block_reader import BlockReader, ReadCounters

_OFFSET_BYTES: Final = 8


class PlainStrings:
    """A `StoredColumn` of strings: offsets first, then the bytes they point at."""

    def __init__(self, place: ColumnPlace) -> None:
        assert place.layout.offsets is not None
        assert place.checksums.offsets is not None
        self._place = place
        self._validity = Validity(place)
        self._offsets = place.layout.offsets
        self._offsets_crcs = place.checksums.offsets

    def read_vectors(
        self, reader: BlockReader, vectors: NDArray[np.int64], counters: ReadCounters, *, verify: bool
    ) -> pa.Array[Any]:
        """See `StoredColumn.read_vectors`."""
        place = self._place
        counts = place.vector_rows(vectors)
        rows = int(counts.sum())
        ranges = self._offset_ranges(vectors)
        with place.name_vector_in_errors("offsets", vectors):
            stored = reader.read_ranges(*ranges, counters, self._offsets_crcs[vectors] if verify else None)
        offsets = pa.allocate_buffer(_OFFSET_BYTES * (rows + 1))
        bad, starts, lengths = _native.join_offsets(stored, counts, place.layout.values.length, offsets)
        if bad < 0 and len(starts) > 1:
            overlapping = starts[1:] < starts[:-1] + lengths[:-1]
            bad = int(np.argmax(overlapping)) + 1 if overlapping.any() else -1
        if bad >= 0:
            raise place.corrupt(int(vectors[bad]), "its offsets do not ascend within its column")
        checksums = place.checksums.values[vectors] if verify else None
        with place.name_vector_in_errors("bytes", vectors):
            data = reader.read_ranges(place.layout.values.offset + starts, lengths, counters, checksums)
        nulls, bitmap = self._validity.read_vectors(reader, vectors, counters, verify=verify)
        return pa.Array.from_buffers(place.type, rows, [bitmap, offsets, data], nulls)

    def read_rows(
        self, reader: BlockReader, rows: NDArray[np.int64], counters: ReadCounters
    ) -> pa.Array[Any]:
        """See `StoredColumn.read_rows`."""
        place = self._place
        pairs = reader.gather(self._offsets.offset, _OFFSET_BYTES, 2 * _OFFSET_BYTES, rows, counters)
        starts, ends = np.frombuffer(view(pairs), np.int64).reshape(-1, 2).T
        before = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        wrong = (starts < before) | (ends < starts) | (ends > place.layout.values.length)
        if wrong.any():
            row = int(rows[np.argmax(wrong)])
            raise place.corrupt(row // VECTOR_ROWS, f"the offsets of row {row} do not ascend")
        lengths = ends - starts
        data = reader.read_ranges(place.layout.values.offset + starts, lengths, counters)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        bitmap = self._validity.read_rows(reader, rows, counters)
        return pa.Array.from_buffers(place.type, len(rows), [bitmap, pa.py_buffer(view(offsets)), data])

    def vectors_footprint(self, vectors: NDArray[np.int64], block_size: int) -> Footprint:
        """See `StoredColumn.vectors_footprint`; the bytes of each vector are taken to be the average."""
        data = self._data_footprint(vectors, VECTOR_ROWS, block_size)
        validity = self._validity.vectors_footprint(vectors, block_size)
        return self._offsets_footprint(vectors, block_size) + data + validity

    def rows_footprint(
        self, rows: NDArray[np.int64], vectors: NDArray[np.int64], block_size: int
    ) -> Footprint:
        """See `StoredColumn.rows_footprint`; strings are taken to be of average length."""
        pair = 2 * _OFFSET_BYTES
        counts = _native.count_row_blocks(self._offsets.offset, _OFFSET_BYTES, pair, rows, block_size)
        data = self._data_footprint(rows, 1, block_size)
        return Footprint(*counts) + data + self._validity.rows_footprint(rows, block_size)

    def shape(self, vectors: NDArray[np.int64]) -> ColumnShape:
        """See `StoredColumn.shape`."""
        offsets = BufferShape(8 * _OFFSET_BYTES, width=_OFFSET_BYTES + 1)
        data = BufferShape(8 * self._row_bytes, width=self._row_bytes)
        return ColumnShape((offsets, data, *self._validity.shapes(vectors)), rounds=2)

    def _offsets_footprint(self, vectors: NDArray[np.int64], block_size: int) -> Footprint:
        return Footprint(*_native.count_range_blocks(*self._offset_ranges(vectors), block_size))

    def _data_footprint(self, items: NDArray[np.int64], rows: int, block_size: int) -> Footprint:
        """Blocks of the bytes of items of `rows` rows each, if all strings were of average length."""
        starts = (items * (rows * self._row_bytes)).astype(np.int64)
        ends = np.ceil((items + 1) * (rows * self._row_bytes)).astype(np.int64)
        return Footprint(*_native.count_range_blocks(starts, ends - starts, block_size))

    @property
    def _row_bytes(self) -> float:
        return self._place.layout.values.length / max(self._place.rows, 1)

    def _offset_ranges(self, vectors: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """A vector of n rows has n + 1 offsets, the last of which is the next one's first."""
        starts = self._offsets.offset + vectors * (VECTOR_ROWS * _OFFSET_BYTES)
        return starts, (self._place.vector_rows(vectors) + 1) * _OFFSET_BYTES
