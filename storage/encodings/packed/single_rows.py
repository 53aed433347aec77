"""Some rows of packed columns: by single loads, or out of whole vectors, which can be verified.

A row is a load of 8 bytes, and another one for the few that are exceptions.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.encodings.plain import ColumnPlace
from bamquery.storage.files.buffers import view
from bamquery.storage.format.layout import LOAD_BYTES, PackedLayout
from bamquery.storage.format.storable_types import value_bits, value_kind
from bamquery.storage.readers.block_reader import BlockReader, ReadCounters

_LOAD: Final = 1, LOAD_BYTES
"""Stride and width of what is gathered: bytes anywhere."""


class SingleRows:
    """Reads rows of one column."""

    def __init__(
        self, place: ColumnPlace, packing: NDArray[np.uint8], encoding: PackedLayout, *, refers: bool
    ) -> None:
        """`packing`: parameters of all vectors; they are possible. `refers`: a row may be an exception."""
        self._place = place
        self._scale = encoding.divisor, encoding.origin
        self._column = value_kind(place.type), packing, place.rows, place.layout.values.length
        self._bits = value_bits(place.type)
        self._refers = refers

    def count_blocks(self, rows: NDArray[np.int64], block_size: int) -> tuple[int, int]:
        """Runs of blocks, and blocks, with the codes of `rows`, and those to expect of exceptions."""
        base = self._place.layout.values.offset
        runs, blocks, *rest = _native.count_packed_blocks(*self._column, rows, base, block_size)
        return runs + round(rest[0]), blocks + round(rest[1])

    def read(self, reader: BlockReader, rows: NDArray[np.int64], counters: ReadCounters) -> pa.Array[Any]:
        """The values at `rows`; see `StoredColumn.read_rows`."""
        base = self._place.layout.values.offset
        # Exceptions often lie where codes do. What is held is at most what the vectors take in the file.
        held = _native.HeldBlocks() if self._refers else None
        words = reader.gather(base, *_LOAD, _native.packed_places(*self._column, rows), counters, held)
        values = pa.allocate_buffer(-(-len(rows) * self._bits // 8))
        bitmap = pa.allocate_buffer(-(-len(rows) // 8))
        left, places = _native.unpack_rows(*self._column, *self._scale, rows, words, values, bitmap)
        if len(left):
            order = np.argsort(places, kind="stable")
            rest = reader.gather(base, *_LOAD, places[order], counters, held)
            _native.unpack_rest(*self._column, *self._scale, rows, left[order], rest, values, bitmap)
        valid = np.unpackbits(np.frombuffer(view(bitmap), np.uint8), count=len(rows), bitorder="little")
        nulls = len(rows) - int(np.count_nonzero(valid))
        return pa.Array.from_buffers(self._place.type, len(rows), [bitmap if nulls else None, values], nulls)

    def fetch(
        self, reader: BlockReader, rows: NDArray[np.int64], counters: ReadCounters, *, verify: bool
    ) -> pa.Array[Any]:
        """The values at `rows`, out of their vectors as these come; see `PackedColumn.fetch_rows`."""
        place = self._place
        data = place.layout.values
        values = pa.allocate_buffer(-(-len(rows) * self._bits // 8))
        bitmap = pa.allocate_buffer(-(-len(rows) // 8))
        checksums = place.checksums.values if verify else None

        def read(file: _native.BlockFile) -> tuple[int, int, int, int]:
            return _native.fetch_packed_rows(
                file, *self._column, *self._scale, data.offset, checksums, rows, values, bitmap
            )

        try:
            mismatch, nulls = reader.count_reads(read, data.offset, data.offset + data.length, counters)
        except ValueError as error:
            raise place.corrupt_column(str(error)) from error
        if mismatch >= 0:
            raise place.corrupt(mismatch, "its values do not match their checksum")
        return pa.Array.from_buffers(place.type, len(rows), [bitmap if nulls else None, values], nulls)
