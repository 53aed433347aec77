"""The validity bitmap of a column that is being written; it exists once the first null came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native


class ValidityBuilder:
    """Collects which rows are not null; bits behind the last row stay clear."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self.bitmap: NDArray[np.uint8] | None = None
        """One bit a row, or None so long as no row is null."""

    def add(self, chunk: pa.Array[Any], row: int) -> None:
        """Take the nulls of a chunk that starts at `row`."""
        if chunk.null_count == 0:
            return
        if self.bitmap is None:
            self.bitmap = np.full(-(-self._rows // 8), 0xFF, np.uint8)
            if self._rows % 8:
                self.bitmap[-1] = (1 << self._rows % 8) - 1
        _native.copy_bits(chunk.buffers()[0], chunk.offset, len(chunk), self.bitmap, row)

    def vectors(self, row: int) -> NDArray[np.uint8] | None:
        """The bitmap from `row`, a vector's first, on."""
        return None if self.bitmap is None else self.bitmap[row // 8 :]
