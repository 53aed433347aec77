"""The validity bitmap of a column that is being written; it exists once the first null came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native

_ALL = 0xFF


class ValidityBuilder:
    """Collects which rows are not null; behind the last row bits are clear once it is finished."""

    def __init__(self, rows: int = 0) -> None:
        """`rows`: how many are to be expected."""
        self._expected = rows
        self._rows = 0
        self._bits: NDArray[np.uint8] | None = None

    @property
    def held_bytes(self) -> int:
        """Of memory."""
        return 0 if self._bits is None else self._bits.nbytes

    def add(self, chunk: pa.Array[Any], row: int) -> None:
        """Take the nulls of a chunk that starts at `row`, where the one before ended."""
        end = row + len(chunk)
        if chunk.null_count or self._bits is not None:
            bits = self._reserve(end)
            if chunk.null_count:
                _native.copy_bits(chunk.buffers()[0], chunk.offset, len(chunk), bits, row)
        self._rows = end

    def vectors(self, row: int) -> NDArray[np.uint8] | None:
        """The bitmap from `row`, a vector's first, on."""
        return None if self._bits is None else self._bits[row // 8 : -(-self._rows // 8)]

    def finish(self) -> NDArray[np.uint8] | None:
        """One bit a row, or None if no row is null; nothing is added afterwards."""
        bitmap = self.vectors(0)
        if bitmap is not None and self._rows % 8:
            bitmap[-1] &= (1 << self._rows % 8) - 1
        return bitmap

    def _reserve(self, rows: int) -> NDArray[np.uint8]:
        """Room for so many rows; those that are new are not null."""
        if self._bits is None:
            self._bits = np.full(-(-max(rows, self._expected) // 8), _ALL, np.uint8)
        elif 8 * self._bits.size < rows:
            grown = np.full(max(-(-rows // 8), 2 * self._bits.size), _ALL, np.uint8)
            grown[: self._bits.size] = self._bits
            self._bits = grown
        return self._bits
