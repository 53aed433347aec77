"""Plain columns: values of one width, end to end, as Arrow has them in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.errors import CorruptionError
from bamquery.storage.encodings.encoding import BufferShape, ColumnShape, Footprint, VectorChecksums
from bamquery.storage.encodings.fixed_width import fixed_footprint, of_vectors, vector_ranges, whole_footprint
from bamquery.storage.files.buffers import view
from bamquery.storage.format.layout import VECTOR_ROWS, ColumnLayout
from bamquery.storage.format.storable_types import value_bits
from bamquery.storage.readers.block_reader import BlockReader, RangeMismatchError, ReadCounters

_BITMAP_BYTES = VECTOR_ROWS // 8


@dataclass(frozen=True)
class ColumnPlace:
    """Which column this is, where its buffers are, and what is known of its vectors."""

    path: Path
    name: str
    type: pa.DataType
    """As stored: the index type for dictionary columns."""
    rows: int
    layout: ColumnLayout
    checksums: VectorChecksums
    null_counts: NDArray[np.int64]

    def have_nulls(self, vectors: NDArray[np.int64]) -> bool:
        """Whether one of those vectors has a null."""
        return self.layout.has_nulls and bool(of_vectors(self.null_counts, vectors).any())

    def vector_rows(self, vectors: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows of each vector: 1,024, but for the fragment's last."""
        return np.minimum(self.rows - vectors * VECTOR_ROWS, VECTOR_ROWS)

    def count_rows(self, vectors: NDArray[np.int64]) -> int:
        """Rows of ascending vectors together."""
        if not len(vectors):
            return 0
        last = min(self.rows - int(vectors[-1]) * VECTOR_ROWS, VECTOR_ROWS)
        return (len(vectors) - 1) * VECTOR_ROWS + last

    @contextmanager
    def name_vector_in_errors(self, part: str, vectors: NDArray[np.int64]) -> Iterator[None]:
        """Say of which vector a failed checksum is."""
        try:
            yield
        except RangeMismatchError as error:
            vector = int(vectors[error.index])
            raise self.corrupt(vector, f"its {part} do not match their checksum") from error

    def corrupt(self, vector: int, message: str) -> CorruptionError:
        """The error for a damaged vector."""
        return CorruptionError(f'column "{self.name}", vector {vector}: {message}', self.path)

    def corrupt_column(self, message: str) -> CorruptionError:
        """The error for a damaged column."""
        return CorruptionError(f'column "{self.name}": {message}', self.path)


class PlainColumn:
    """A `StoredColumn` of fixed width, or of bits."""

    def __init__(self, place: ColumnPlace) -> None:
        self._place = place
        self._bits = value_bits(place.type)
        self._validity = Validity(place)

    def read_vectors(
        self, reader: BlockReader, vectors: NDArray[np.int64], counters: ReadCounters, *, verify: bool
    ) -> pa.Array[Any]:
        """See `StoredColumn.read_vectors`."""
        place = self._place
        rows = int(place.vector_rows(vectors).sum())
        offsets, lengths = vector_ranges(place.layout.values, self._bits, vectors)
        checksums = place.checksums.values[vectors] if verify else None
        with place.name_vector_in_errors("values", vectors):
            values = reader.read_ranges(offsets, lengths, counters, checksums)
        nulls, bitmap = self._validity.read_vectors(reader, vectors, counters, verify=verify)
        return pa.Array.from_buffers(place.type, rows, [bitmap, values], nulls)

    def read_rows(
        self, reader: BlockReader, rows: NDArray[np.int64], counters: ReadCounters
    ) -> pa.Array[Any]:
        """See `StoredColumn.read_rows`."""
        base = self._place.layout.values.offset
        if self._bits == 1:
            values = reader.gather_bits(base, rows, counters)
        else:
            width = self._bits // 8
            values = reader.gather(base, width, width, rows, counters)
        bitmap = self._validity.read_rows(reader, rows, counters)
        return pa.Array.from_buffers(self._place.type, len(rows), [bitmap, values])

    def vectors_footprint(self, vectors: NDArray[np.int64], block_size: int) -> Footprint:
        """See `StoredColumn.vectors_footprint`."""
        own = whole_footprint(self._place.layout.values, self._bits, vectors, block_size)
        return own + self._validity.vectors_footprint(vectors, block_size)

    def rows_footprint(
        self, rows: NDArray[np.int64], vectors: NDArray[np.int64], block_size: int
    ) -> Footprint:
        """See `StoredColumn.rows_footprint`."""
        own = fixed_footprint(self._place.layout.values, self._bits, rows, block_size)
        return own + self._validity.rows_footprint(rows, block_size)

    def shape(self, vectors: NDArray[np.int64]) -> ColumnShape:
        """See `StoredColumn.shape`."""
        return ColumnShape((BufferShape(self._bits), *self._validity.shapes(vectors)))


class Validity:
    """The validity bitmap of a column. Vectors without a null, or with nothing else, need no reading."""

    def __init__(self, place: ColumnPlace) -> None:
        self._place = place

    def read_vectors(
        self, reader: BlockReader, vectors: NDArray[np.int64], counters: ReadCounters, *, verify: bool
    ) -> tuple[int, pa.Buffer | None]:
        """How many rows of `vectors` are null, and their bitmap, if any is."""
        place = self._place
        nulls = place.null_counts[vectors]
        total = int(nulls.sum())
        if place.layout.validity is None or not total:
            return 0, None
        # Bits that were not verified may have another number of nulls; Arrow trusts the one it is told.
        trusted = total if verify else -1
        assert place.checksums.validity is not None
        mixed = self._select_mixed_vectors(vectors)
        offsets, lengths = vector_ranges(place.layout.validity, 1, mixed)
        with place.name_vector_in_errors("validity bits", mixed):
            data = reader.read_ranges(
                offsets, lengths, counters, place.checksums.validity[mixed] if verify else None
            )
        if len(mixed) == len(vectors):
            return trusted, data
        bitmap = np.repeat(np.where(nulls == 0, 0xFF, 0).astype(np.uint8), _BITMAP_BYTES)
        bits = bitmap.reshape(-1, _BITMAP_BYTES)
        short = len(mixed) * _BITMAP_BYTES - data.size
        read = np.concatenate([np.frombuffer(view(data), np.uint8), np.zeros(short, np.uint8)])
        bits[np.searchsorted(vectors, mixed)] = read.reshape(-1, _BITMAP_BYTES)
        return trusted, pa.py_buffer(view(bitmap))

    def read_rows(
        self, reader: BlockReader, rows: NDArray[np.int64], counters: ReadCounters
    ) -> pa.Buffer | None:
        """The bits of `rows`, packed, or None if none of their vectors has a null."""
        validity = self._place.layout.validity
        if validity is None:
            return None
        vectors = rows // VECTOR_ROWS
        nulls = self._place.null_counts[vectors]
        if not nulls.any():
            return None
        valid = nulls == 0
        unknown = ~valid & (nulls < self._place.vector_rows(vectors))
        data = reader.gather_bits(validity.offset, rows[unknown], counters)
        bits = np.unpackbits(np.frombuffer(view(data), np.uint8), bitorder="little")
        valid[unknown] = bits[: np.count_nonzero(unknown)] != 0
        return pa.py_buffer(view(np.packbits(valid, bitorder="little")))

    def vectors_footprint(self, vectors: NDArray[np.int64], block_size: int) -> Footprint:
        """What `read_vectors` takes."""
        validity = self._place.layout.validity
        if validity is None:
            return Footprint(0, 0)
        return whole_footprint(validity, 1, self._select_mixed_vectors(vectors), block_size)

    def rows_footprint(self, rows: NDArray[np.int64], block_size: int) -> Footprint:
        """What `read_rows` takes."""
        place = self._place
        if place.layout.validity is None:
            return Footprint(0, 0)
        nulls = place.null_counts[rows // VECTOR_ROWS]
        mixed = rows[(nulls > 0) & (nulls < place.vector_rows(rows // VECTOR_ROWS))]
        return fixed_footprint(place.layout.validity, 1, mixed, block_size)

    def shapes(self, vectors: NDArray[np.int64]) -> tuple[BufferShape, ...]:
        """Of the bitmap, if rows of these vectors need it."""
        if self._place.layout.validity is None or not len(vectors):
            return ()
        mixed = len(self._select_mixed_vectors(vectors))
        return (BufferShape(1, mixed / len(vectors)),) if mixed else ()

    def _select_mixed_vectors(self, vectors: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of `vectors` that have nulls and values."""
        nulls = self._place.null_counts[vectors]
        return vectors[(nulls > 0) & (nulls < self._place.vector_rows(vectors))]
