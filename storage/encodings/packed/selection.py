"""Rows of packed vectors in memory, not decoded: whoever takes them may do so on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.storage.encodings.fixed_width import rows_at
from bamquery.storage.encodings.packed.vectors import PackedVectors
from bamquery.storage.format.storable_types import value_bits


@dataclass(slots=True, eq=False)
class PackedSelection:
    """Some rows of packed vectors.

    Attributes:
        packed: the vectors, with no dictionary.
        rows: ascending row ids of the fragment, all in these vectors; None: all of the vectors' rows.
    """

    packed: PackedVectors
    rows: NDArray[np.int64] | None

    def __len__(self) -> int:
        return self.packed.row_count if self.rows is None else len(self.rows)

    @property
    def type(self) -> pa.DataType:
        """Of the values."""
        return self.packed.place.type

    @property
    def nbytes(self) -> int:
        """Memory that the values take once they are decoded."""
        return -(-len(self) * value_bits(self.type) // 8)

    def ids_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ids of the rows at those positions."""
        if self.rows is not None:
            return self.rows[positions]
        return rows_at(self.packed.vectors, positions)

    def take(self, rows: NDArray[np.int64]) -> PackedSelection:
        """The rows of those ids."""
        return PackedSelection(self.packed, rows)

    def decode(self) -> pa.Array[Any]:
        """The values.

        Raises:
            CorruptionError: bytes cannot be a column.
        """
        if self.rows is None:
            return self.packed.decode()
        return self.packed.pick(self.rows)
