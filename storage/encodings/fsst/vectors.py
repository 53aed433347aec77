"""Vectors of strings in memory, as they are stored: decoded, when that is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.errors import CorruptionError
from bamquery.storage.encodings.stored_vectors import StoredVectors
from bamquery.storage.files.buffers import view


@dataclass(slots=True, eq=False)
class FsstVectors(StoredVectors):
    """Vectors of compressed strings, with 48 bytes of parameters each.

    Attributes:
        symbols: that their codes stand for.
    """

    symbols: bytes

    def decode(self) -> pa.Array[Any]:
        """See `StoredVectors.decode`."""
        return self._array(None)

    def pick(self, rows: NDArray[np.int64]) -> pa.Array[Any]:
        """See `StoredVectors.pick`."""
        return self._array(self.positions(rows))

    def _array(self, positions: NDArray[np.int64] | None) -> pa.Array[Any]:
        place = self.place
        what = (self.symbols, self.payload, self.starts, self.parameters, self.rows)
        try:
            found = _native.fsst_unpack(*what, positions)
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
