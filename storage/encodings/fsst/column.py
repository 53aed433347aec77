"""Columns of compressed strings behind the seam of readers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.encodings.encoding import BufferShape, ColumnShape, Footprint
from bamquery.storage.encodings.fsst.parameters import (
    FSST_VECTOR,
    SYMBOLS_BY_CODE,
    stored_bytes,
)
from bamquery.storage.encodings.fsst.vectors import FsstVectors, string_array
from bamquery.storage.encodings.plain import ColumnPlace
from bamquery.storage.readers.block_reader import BlockReader, ReadCounters

_ENDS: Final = 1, 16
"""Stride and width of what is gathered to find a string: bytes anywhere."""


class FsstColumn:
    """A `StoredColumn` of strings. Parameters are compared with all that bounds them when it is made."""

    def __init__(self, place: ColumnPlace, packing: NDArray[np.uint8]) -> None:
        """`packing`: the parameters of all vectors, 48 bytes each.

        Raises:
            CorruptionError: they cannot be those of this column.
        """
        encoding = place.layout.encoding
        assert encoding is not None
        assert encoding.symbols is not None
        self._place = place
        self._symbols = encoding.symbols
        self._packing = packing
        self.parameters: NDArray[Any] = packing.reshape(-1).view(FSST_VECTOR)
        self._require_parameters(encoding.plain_bytes)
        self._column = packing, place.rows, place.layout.values.length

    def read_vectors(
        self, reader: BlockReader, vectors: NDArray[np.int64], counters: ReadCounters, *, verify: bool
    ) -> pa.Array[Any]:
        """See `StoredColumn.read_vectors`."""
        return self.read_packed(reader, vectors, counters, verify=verify).decode()

    def read_packed(
        self, reader: BlockReader, vectors: NDArray[np.int64], counters: ReadCounters, *, verify: bool
    ) -> FsstVectors:
        """Vectors as they are stored, to be decoded; raises as `read_vectors` does."""
        place = self._place
        checksums = place.checksums.values[vectors] if verify else None
        with place.name_vector_in_errors("values", vectors):
            payload = reader.read_ranges(*self._ranges(vectors), counters, checksums)
        lengths, packing = self._lengths[vectors], self._packing[vectors]
        return FsstVectors(place, vectors, payload, lengths, packing, self._symbols)

    def read_rows(
        self, reader: BlockReader, rows: NDArray[np.int64], counters: ReadCounters
    ) -> pa.Array[Any]:
        """See `StoredColumn.read_rows`."""
        place, base = self._place, self._place.layout.values.offset
        ends = reader.gather(base, *_ENDS, _native.fsst_places(*self._column, rows), counters)
        try:
            starts, lengths, bitmap, nulls = _native.fsst_ranges(*self._column, rows, ends)
            stored = reader.read_ranges(base + starts, lengths, counters)
            offsets, data = _native.fsst_decode(self._symbols, *self._column, rows, lengths, stored)
        except ValueError as error:
            raise place.corrupt_column(str(error)) from error
        return string_array(place.type, offsets, data, bitmap, nulls)

    def vectors_footprint(self, vectors: NDArray[np.int64], block_size: int) -> Footprint:
        """See `StoredColumn.vectors_footprint`."""
        return Footprint(*_native.count_range_blocks(*self._ranges(vectors), block_size))

    def rows_footprint(
        self, rows: NDArray[np.int64], vectors: NDArray[np.int64], block_size: int
    ) -> Footprint:
        """See `StoredColumn.rows_footprint`; strings are taken to be as long as their vectors' others."""
        base = self._place.layout.values.offset
        places = _native.fsst_places(*self._column, rows)
        ends = _native.count_row_blocks(base, *_ENDS, places, block_size)
        of_rows, row = rows // 1024, rows % 1024
        held = self._place.vector_rows(of_rows)
        stored = stored_bytes(self.parameters)[of_rows]
        first = self.payload_starts[of_rows] + self._code_bytes[of_rows] + base
        starts = first + stored * row // held
        lengths = first + -(-stored * (row + 1) // held) - starts
        return Footprint(*ends) + Footprint(*_native.count_range_blocks(starts, lengths, block_size))

    def shape(self, vectors: NDArray[np.int64]) -> ColumnShape:
        """See `StoredColumn.shape`; a row is read as the bytes that its end is in, and its own."""
        rows = max(int(self._place.vector_rows(vectors).sum()), 1)
        ends = BufferShape(8 * int(self._code_bytes[vectors].sum()) / rows, width=_ENDS[1])
        size = int((self._lengths - self._code_bytes)[vectors].sum()) / rows
        return ColumnShape((ends, BufferShape(8 * size, width=size)), rounds=2, form="fsst")

    def symbols_by_code(self) -> NDArray[Any]:
        """What codes stand for, a SYMBOLS_BY_CODE.

        Raises:
            CorruptionError: they cannot be symbols.
        """
        found = np.zeros(1, SYMBOLS_BY_CODE)
        try:
            found["bytes"], found["lengths"] = _native.fsst_symbols(self._symbols)
        except ValueError as error:
            raise self._place.corrupt_column(str(error)) from error
        return found

    @property
    def payload_lengths(self) -> NDArray[np.int64]:
        """Bytes of each vector's payload."""
        return self._lengths

    def _ranges(self, vectors: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self._place.layout.values.offset + self.payload_starts[vectors], self._lengths[vectors]

    def _require_parameters(self, plain_bytes: int) -> None:
        """Payloads lie end to end and fill the buffer; nulls are where statistics know of some."""
        place, data_bytes = self._place, self._place.layout.values.length
        try:
            found = _native.check_fsst_column(self._packing, place.rows, data_bytes)
        except ValueError as error:
            raise place.corrupt_column(str(error)) from error
        self.payload_starts, self._lengths, self._code_bytes, strings, fault = found
        if fault is not None:
            raise place.corrupt(*fault)
        if strings != plain_bytes:
            raise place.corrupt_column("how long its strings are is said in two ways")
        odd = (self.parameters["has_nulls"] != 0) != (place.null_counts > 0)
        if odd.any():
            raise place.corrupt(int(np.argmax(odd)), "whether it has nulls is said in two ways")
