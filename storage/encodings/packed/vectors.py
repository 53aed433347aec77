"""Vectors of a packed column in memory, as they are stored: compared, or decoded, when that is wanted."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.errors import CorruptionError
from bamquery.storage.encodings.stored_vectors import StoredVectors
from bamquery.storage.format.layout import VECTOR_ROWS, PackedLayout
from bamquery.storage.format.storable_types import value_bits, value_kind
from bamquery.storage.statistics.order_keys import KeyCondition
from bamquery.storage.statistics.packed_parts import PackedParts

_VECTOR_BYTES = VECTOR_ROWS // 8
_FEW_INTERVALS: Final = 64
"""Of a condition that is made for native functions once, however many chunks it is asked of."""


@dataclass(slots=True, eq=False)
class PackedVectors(StoredVectors):
    """Vectors of a packed column, with 16 bytes of parameters each.

    Attributes:
        encoding: what they share.
    """

    encoding: PackedLayout

    def decode(self) -> pa.Array[Any]:
        """See `StoredVectors.decode`."""
        return self._array(self.row_count, None)

    def pick(self, rows: NDArray[np.int64]) -> pa.Array[Any]:
        """See `StoredVectors.pick`."""
        return self._array(len(rows), rows)

    def compare(self, condition: KeyCondition) -> tuple[NDArray[np.uint8], int]:
        """A bit for each row, whether it passes, 128 bytes for each vector; and how many rows pass.

        Raises:
            CorruptionError: bytes cannot be a column.
        """
        kind = value_kind(self.place.type)
        terms, bounds = native_condition(condition, kind)
        mask = np.zeros(len(self.vectors) * _VECTOR_BYTES, np.uint8)
        with self._name_column_in_errors():
            count = _native.compare_packed(*self._arguments(kind), terms, bounds, condition.nulls, mask)
        return mask, count

    def find_parts(self) -> PackedParts:
        """Bounds and checksums of the vectors' parts.

        Raises:
            CorruptionError: bytes cannot be a column.
        """
        with self._name_column_in_errors():
            return PackedParts.from_native(
                _native.packed_parts(*self._arguments(value_kind(self.place.type)))
            )

    def _array(self, rows: int, ids: NDArray[np.int64] | None) -> pa.Array[Any]:
        place = self.place
        values = pa.allocate_buffer(-(-rows * value_bits(place.type) // 8))
        bitmap = pa.allocate_buffer(-(-rows // 8)) if place.have_nulls(self.vectors) else None
        arguments = self._arguments(value_kind(place.type))
        with self._name_column_in_errors():
            if ids is None:
                nulls = _native.unpack_vectors(*arguments, values, bitmap)
            else:
                nulls = _native.pick_rows(*arguments, self.vectors * VECTOR_ROWS, ids, values, bitmap)
        return pa.Array.from_buffers(place.type, rows, [bitmap if nulls else None, values], nulls)

    def _arguments(
        self, kind: str
    ) -> tuple[str, Any, NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64], int, int]:
        """What native functions take of vectors and their column."""
        return (
            kind,
            self.payload,
            self.starts,
            self.parameters,
            self.rows,
            self.encoding.divisor,
            self.encoding.origin,
        )

    @contextmanager
    def _name_column_in_errors(self) -> Iterator[None]:
        """Say of which column an error is."""
        try:
            yield
        except ValueError as error:
            raise CorruptionError(f'column "{self.place.name}": {error}', self.place.path) from error


def native_condition(condition: KeyCondition, kind: str) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The terms and bounds that native functions take of a condition on values of a kind."""
    few = len(condition.intervals) <= _FEW_INTERVALS
    return _known_condition(condition, kind) if few else _make_condition(condition, kind)


def _make_condition(condition: KeyCondition, kind: str) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    words = 2 if kind == "int128" else 1
    bounds = [
        key >> (64 * word) & 0xFFFFFFFFFFFFFFFF
        for interval in condition.intervals
        for key in interval
        for word in range(words)
    ]
    return np.array([(len(condition.intervals), 0)], np.int64), np.array(bounds, np.uint64)


_known_condition: Final = functools.lru_cache(maxsize=256)(_make_condition)
