"""Vectors of an encoded column in memory, as they are stored: decoded, when that is wanted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.storage.encodings.fixed_width import positions_in
from bamquery.storage.encodings.plain import ColumnPlace


@dataclass(slots=True, eq=False)
class StoredVectors(ABC):
    """Payloads of some vectors, end to end. Positions are those among these vectors' rows.

    Attributes:
        place: the column's.
        vectors: ascending numbers.
        payload: a buffer of all payloads.
        lengths: of each payload in bytes.
        parameters: of each vector, as bytes.
    """

    place: ColumnPlace
    vectors: NDArray[np.int64]
    payload: Any
    lengths: NDArray[np.int64]
    parameters: NDArray[np.uint8]

    @property
    def rows(self) -> NDArray[np.int64]:
        """Of each vector."""
        return self.place.vector_rows(self.vectors)

    @property
    def row_count(self) -> int:
        """Rows of all these vectors."""
        return self.place.count_rows(self.vectors)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where in the buffer each payload begins."""
        starts: NDArray[np.int64] = self.lengths.cumsum() - self.lengths
        return starts

    def positions(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where rows of the fragment are among these vectors' rows; all are there."""
        return positions_in(self.vectors, rows)

    @abstractmethod
    def decode(self) -> pa.Array[Any]:
        """All values.

        Raises:
            CorruptionError: bytes cannot be a column.
        """
        ...

    @abstractmethod
    def pick(self, rows: NDArray[np.int64]) -> pa.Array[Any]:
        """The values of ascending rows of the fragment, all of which are there.

        Raises:
            CorruptionError: bytes cannot be a column.
        """
        ...
