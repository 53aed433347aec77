"""Packed columns behind the seam of readers."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.encodings.encoding import BufferShape, ColumnShape, Footprint
from bamquery.storage.encodings.fixed_width import of_vectors
from bamquery.storage.encodings.packed.parameters import PACKED_VECTOR
from bamquery.storage.encodings.packed.single_rows import SingleRows
from bamquery.storage.encodings.packed.vectors import PackedVectors
from bamquery.storage.encodings.plain import ColumnPlace
from bamquery.storage.format.layout import PackedLayout
from bamquery.storage.format.storable_types import value_kind
from bamquery.storage.readers.block_reader import BlockReader, ReadCounters


class PackedColumn:
    """A `StoredColumn` of payloads. Parameters are compared with all that bounds them when it is made."""

    def __init__(self, place: ColumnPlace, packing: NDArray[np.uint8]) -> None:
        """`packing`: the parameters of all vectors, 16 bytes each.

        Raises:
            CorruptionError: they cannot be those of this column.
        """
        encoding = place.layout.encoding
        assert encoding is not None
        self._place = place
        self._encoding: PackedLayout = encoding
        self._packing = packing
        self._data = place.layout.values.offset
        self.parameters: NDArray[Any] = packing.reshape(-1).view(PACKED_VECTOR)
        try:
            self.payload_starts, self.payload_sizes, self._referring, fault = _native.check_packed_column(
                value_kind(place.type), packing, place.rows, place.layout.values.length, place.null_counts
            )
        except ValueError as error:
            raise place.corrupt_column(str(error)) from error
        if fault is not None:
            raise place.corrupt(*fault)
        self._single = SingleRows(place, packing, encoding, refers=bool(self._referring.any()))

    @cached_property
    def native(self) -> _native.PackedColumn:
        """The column as native functions take it that read several."""
        place, encoding = self._place, self._encoding
        return _native.PackedColumn(
            value_kind(place.type),
            self._packing,
            place.rows,
            place.layout.values.length,
            encoding.divisor,
            encoding.origin,
            place.layout.values.offset,
            place.checksums.values,
        )

    @property
    def place(self) -> ColumnPlace:
        """Which column this is."""
        return self._place

    def span(self, vectors: NDArray[np.int64]) -> tuple[int, int]:
        """Where in the file the payloads of one or more vectors begin and end."""
        return self.span_of(int(vectors[0]), int(vectors[-1]))

    def span_of(self, first: int, last: int) -> tuple[int, int]:
        """The same of a first and a last vector."""
        data = self._data
        end = data + int(self.payload_starts[last]) + int(self.payload_sizes[last])
        return data + int(self.payload_starts[first]), end

    def hold(self, vectors: NDArray[np.int64], payload: Any, lengths: NDArray[np.int64]) -> PackedVectors:
        """Vectors whose payloads were read."""
        packing = of_vectors(self._packing, vectors)
        return PackedVectors(self._place, vectors, payload, lengths, packing, self._encoding)

    def read_vectors(
        self, reader: BlockReader, vectors: NDArray[np.int64], counters: ReadCounters, *, verify: bool
    ) -> pa.Array[Any]:
        """See `StoredColumn.read_vectors`."""
        return self.read_packed(reader, vectors, counters, verify=verify).decode()

    def read_packed(
        self, reader: BlockReader, vectors: NDArray[np.int64], counters: ReadCounters, *, verify: bool
    ) -> PackedVectors:
        """Vectors as they are stored, to be decoded or compared; raises as `read_vectors` does."""
        place = self._place
        offsets, lengths = self._ranges(vectors)
        checksums = place.checksums.values[vectors] if verify else None
        with place.name_vector_in_errors("values", vectors):
            payload = reader.read_ranges(offsets, lengths, counters, checksums)
        return self.hold(vectors, payload, lengths)

    def read_rows(
        self, reader: BlockReader, rows: NDArray[np.int64], counters: ReadCounters
    ) -> pa.Array[Any]:
        """See `StoredColumn.read_rows`."""
        return self._single.read(reader, rows, counters)

    def fetch_rows(
        self, reader: BlockReader, rows: NDArray[np.int64], counters: ReadCounters, *, verify: bool
    ) -> pa.Array[Any]:
        """The same from whole vectors, all those that hold `rows`; raises as `read_vectors` does."""
        return self._single.fetch(reader, rows, counters, verify=verify)

    def vectors_footprint(self, vectors: NDArray[np.int64], block_size: int) -> Footprint:
        """See `StoredColumn.vectors_footprint`."""
        return Footprint(*_native.count_range_blocks(*self._ranges(vectors), block_size))

    def rows_footprint(
        self, rows: NDArray[np.int64], vectors: NDArray[np.int64], block_size: int
    ) -> Footprint:
        """See `StoredColumn.rows_footprint`; only data tell which rows are escapes: those to expect count."""
        return Footprint(*self._single.count_blocks(rows, block_size))

    def shape(self, vectors: NDArray[np.int64]) -> ColumnShape:
        """See `StoredColumn.shape`; a row is read as the 8 bytes that its code begins in."""
        rows = max(self._place.count_rows(vectors), 1)
        bits = 8 * int(self.payload_sizes[vectors].sum()) / rows
        referring = float(self._referring[vectors].sum()) / rows
        buffers = (BufferShape(bits, width=8),)
        return ColumnShape(buffers, form="packed", refers=referring > 0, referring=referring)

    def _ranges(self, vectors: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        starts, sizes = of_vectors(self.payload_starts, vectors), of_vectors(self.payload_sizes, vectors)
        return self._place.layout.values.offset + starts, sizes
