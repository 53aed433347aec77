"""Keys of whole numbers as one number: equal keys have equal codes, different ones different codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.kernels import Column, boolean_values, stored_values, valid_rows

_MOST_CODES: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class _Range:
    """Of one key column: the lowest value, how many numbers there are from it on, whether null is a value."""

    low: int
    count: int
    null: bool

    @property
    def codes(self) -> int:
        return self.count + self.null


class KeyCodes:
    """Codes from 0 for the keys within the ranges of some rows' keys.

    Attributes:
        codes: how many there are; the code of a key that is outside or has a null that equals nothing.
    """

    def __init__(self, ranges: Sequence[_Range]) -> None:
        """Of each column."""
        self._ranges = tuple(ranges)
        self.codes = 1
        for found in ranges:
            self.codes *= found.codes

    @staticmethod
    def from_rows(
        columns: Sequence[Column], rows: NDArray[np.int64] | None, nulls_equal: Sequence[bool]
    ) -> KeyCodes | None:
        """For the keys of those rows (None: all of them); None where they cannot be had."""
        ranges = []
        for column, null in zip(columns, nulls_equal, strict=True):
            kind = column.type
            if not (pa.types.is_integer(kind) or pa.types.is_temporal(kind)):
                return None
            values = stored_values(column)
            if rows is not None:
                values = values[rows]
            present = valid_rows(column)
            if null and present is not None:
                kept = boolean_values(present)
                values = values[kept if rows is None else kept[rows]]
            if not len(values):
                low, high = 0, 0
            else:
                low, high = int(values.min()), int(values.max())
            ranges.append(_Range(low, high - low + 1, null))
        codes = KeyCodes(ranges)
        return codes if codes.codes < _MOST_CODES else None

    def encode(self, columns: Sequence[Column]) -> NDArray[np.int64]:
        """The code of each row's key; `codes` where no key is equal to it."""
        total: NDArray[np.uint64] | None = None
        outside: NDArray[np.bool_] | None = None
        for column, found in zip(columns, self._ranges, strict=True):
            places, beyond = _places(column, found)
            if total is None:
                total = places
                if len(self._ranges) == 1:
                    if beyond is not None:
                        total[beyond] = self.codes
                    return total.view(np.int64)
            else:
                total = total * np.uint64(found.codes) + places
            if beyond is not None:
                outside = beyond if outside is None else outside | beyond
        assert total is not None, "there are keys"
        if outside is not None:
            total[outside] = self.codes
        return total.view(np.int64)


def _places(column: Column, found: _Range) -> tuple[NDArray[np.uint64], NDArray[np.bool_] | None]:
    """Each value's distance from the lowest, and which rows have none; an array of its own."""
    values = stored_values(column)
    # In 64 bits that wrap: what is below the lowest value becomes greater than any distance.
    low: Any = np.int64(found.low) if found.low < 2**63 else np.uint64(found.low).astype(np.int64)
    distances = (values.astype(np.int64, copy=False) - low).view(np.uint64)
    beyond: NDArray[np.bool_] | None = distances >= np.uint64(found.count)
    present = valid_rows(column)
    if present is not None:
        missing = ~boolean_values(present)
        if found.null:
            distances[missing] = found.count
            beyond = beyond & ~missing if beyond is not None else None
        else:
            beyond = missing if beyond is None else beyond | missing
    if beyond is not None and not beyond.any():
        beyond = None
    return distances, beyond
