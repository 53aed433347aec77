"""Where a column's bytes are in its fragment's file, for who reads them without a block reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamquery.storage.encodings.encoding import VectorChecksums
from bamquery.storage.encodings.fsst.column import FsstColumn
from bamquery.storage.encodings.packed.column import PackedColumn
from bamquery.storage.format.layout import VECTOR_ROWS, Extent
from bamquery.storage.format.storable_types import stored_index, value_bits
from bamquery.storage.fragments.fragment import Fragment


@dataclass(frozen=True)
class Packing:
    """How payloads are decoded.

    Attributes:
        parameters: of each vector (`bamquery.storage.encodings.packed.parameters.PACKED_VECTOR`); possible
            ones, by which nothing outside of the column's buffer is reached.
        starts: of each payload in the buffer, in bytes.
        sizes: of each, in bytes.
        divisor: of all vectors of form 0.
        origin: the same.
    """

    parameters: NDArray[Any]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    divisor: int
    origin: int


@dataclass(frozen=True)
class Compression:
    """How compressed strings are decoded.

    Attributes:
        parameters: of each vector (`bamquery.storage.encodings.fsst.parameters.FSST_VECTOR`); possible ones.
        column: what codes mean.
    """

    parameters: NDArray[Any]
    column: FsstColumn


@dataclass(frozen=True)
class StoredBuffers:
    """The buffers of one column in one fragment: each begins on a multiple of `layout.ALIGNMENT` bytes.

    Attributes:
        values: end to end, `bits` each; of dictionaries the indexes, of strings their bytes; payloads where
            there is `packing` or `compression`.
        bits: of a value, as Arrow has it in memory; of an offset where there are `offsets`.
        validity: a bit a row; None where no row is null.
        offsets: of strings, one more than there are rows.
        null_counts: of each vector.
        rows: of the fragment.
        checksums: CRC-32C of what each vector stores.
        packing: of a packed column, which has neither `validity` nor `offsets`.
        compression: of compressed strings; the same.
    """

    values: Extent
    bits: int
    validity: Extent | None
    offsets: Extent | None
    null_counts: NDArray[np.int64]
    rows: int
    checksums: VectorChecksums
    packing: Packing | None = None
    compression: Compression | None = None

    def null_states(self, vectors: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Of each vector 0 if no row is null, 2 if all are, 1 where only `validity` tells which."""
        nulls = self.null_counts[vectors]
        rows = np.minimum(self.rows - vectors * VECTOR_ROWS, VECTOR_ROWS)
        states: NDArray[np.uint8] = np.where(nulls == 0, 0, np.where(nulls < rows, 1, 2)).astype(np.uint8)
        return states


def stored_buffers(fragment: Fragment, column: str) -> StoredBuffers:
    """The buffers of a column, by its exact name."""
    index = fragment.column_index(column)
    type_, layout = fragment.schema.field(index).type, fragment.layout.columns[index]
    stored = fragment.column(column)
    packing = compression = None
    if isinstance(stored, FsstColumn):
        compression = Compression(stored.parameters, stored)
    elif layout.encoding is not None:
        assert isinstance(stored, PackedColumn)
        places = stored.payload_starts, stored.payload_sizes
        packing = Packing(stored.parameters, *places, layout.encoding.divisor, layout.encoding.origin)
    return StoredBuffers(
        values=layout.values,
        bits=value_bits(stored_index(type_, has_dictionary=layout.dictionary is not None)),
        validity=layout.validity,
        offsets=layout.offsets,
        null_counts=fragment.zone_map.null_counts(column),
        rows=fragment.rows,
        checksums=fragment.checksums(column),
        packing=packing,
        compression=compression,
    )
