"""Vectors of strings in memory, as they are stored: decoded, when that is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.errors import CorruptionError
from bamquery.storage.encodings.fixed_width import positions_in
from bamquery.storage.encodings.plain import ColumnPlace
from bamquery.storage.files.buffers import view


@dataclass(frozen=True, slots=True, eq=False)
class FsstVectors:
    """Payloads of some vectors, end to end. Positions are those among these vectors' rows.

    Attributes:
        place: the column's.
        symbols: that its codes stand for.
        vectors: ascending numbers.
        payload: a buffer of all payloads.
        lengths: of each payload in bytes.
        parameters: 48 bytes a vector.
    """

    place: ColumnPlace
    symbols: bytes
    vectors: NDArray[np.int64]
    payload: Any
    lengths: NDArray[np.int64]
    parameters: NDArray[np.uint8]

    @property
    def row_count(self) -> int:
        """Rows of all these vectors."""
        return int(self.place.vector_rows(self.vectors).sum())

    def positions(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where rows of the fragment are among these vectors' rows; all are there."""
        return positions_in(self.vectors, rows)

    def decode(self) -> pa.Array[Any]:
        """All strings.

        Raises:
            CorruptionError: bytes cannot be a column.
        """
        return self._array(None)

    def pick(self, positions: NDArray[np.int64]) -> pa.Array[Any]:
        """The strings at ascending positions.

        Raises:
            CorruptionError: bytes cannot be a column.
        """
        return self._array(positions)

    def _array(self, positions: NDArray[np.int64] | None) -> pa.Array[Any]:
        place = self.place
        starts = np.cumsum(self.lengths) - self.lengths
        rows = place.vector_rows(self.vectors)
        try:
            found = _native.fsst_unpack(self.symbols, self.payload, starts, self.parameters, rows, positions)
        except ValueError as error:
            raise CorruptionError(f'column "{place.name}": {error}', place.path) from error
        return string_array(place.type, *found)


def string_array(
    type_: pa.DataType,
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
    bitmap: NDArray[np.uint8],
    nulls: int,
) -> pa.Array[Any]:
    """What was decoded, as Arrow has it."""
    buffers = [pa.py_buffer(view(bitmap)) if nulls else None]
    buffers += [pa.py_buffer(view(offsets)), pa.py_buffer(view(data))]
    return pa.Array.from_buffers(type_, len(offsets) - 1, buffers, nulls)
