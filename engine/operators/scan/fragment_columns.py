"""Columns of stored fragments, as frames of a device are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.storage.encodings.packed.column import PackedColumn
from bamquery.storage.encodings.packed.column_sets import ColumnRequest
from bamquery.storage.encodings.packed.row_selection import SelectedRows, Step
from bamquery.storage.encodings.packed.selection import PackedSelection
from bamquery.storage.encodings.packed.vectors import PackedVectors
from bamquery.storage.encodings.stored_vectors import StoredVectors
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.reader import FragmentReader, vectors_of
from bamquery.storage.readers.block_reader import ReadCounters

StoredValues: TypeAlias = "pa.Array[Any] | PackedSelection"
"""What frames of stored columns are made of."""

_SPARSEST: Final = 8
"""Part of the rows of their vectors below which rows are decoded by themselves."""


class FragmentColumns:
    """One fragment's columns, read by the host, as frames are made of them.

    Row ids are ascending, unique and relative to the fragment; see `storage.fragments.reader`.
    """

    def __init__(self, reader: FragmentReader, *, keeps_encoded: bool = False) -> None:
        """`keeps_encoded`: columns come as they are stored, where enough of their rows are wanted."""
        self._reader = reader
        self._keeps_encoded = keeps_encoded

    def stream(self, column: str, vectors: NDArray[np.int64], counters: ReadCounters) -> StoredValues:
        """All rows of those vectors, in large requests, checksums verified."""
        if self._stays_packed(column):
            return self._select(column, vectors, None, counters)
        return self._reader.stream(column, vectors, counters)

    def _stays_packed(self, column: str) -> bool:
        return self._keeps_encoded and self.holds_numbers(column)

    def _select(
        self,
        column: str,
        vectors: NDArray[np.int64],
        rows: NDArray[np.int64] | None,
        counters: ReadCounters,
    ) -> PackedSelection:
        packed = self._reader.read_packed(column, vectors, counters)
        assert isinstance(packed, PackedVectors), "it can stay packed"
        return PackedSelection(packed, rows)

    @property
    def is_mapped(self) -> bool:
        """Whether native calls read packed columns together."""
        return self._reader.is_mapped

    def is_packed(self, column: str) -> bool:
        """Whether the column is stored as codes."""
        return self._reader.is_packed(column)

    def read_packed(self, column: str, vectors: NDArray[np.int64], counters: ReadCounters) -> StoredVectors:
        """All rows of those vectors of a column that is stored as codes, not decoded; checksums verified."""
        return self._reader.read_packed(column, vectors, counters)

    def decode(
        self,
        column: str,
        packed: StoredVectors,
        rows: NDArray[np.int64] | None,
        counters: ReadCounters,
    ) -> StoredValues:
        """The values of `rows`, which are among those that `read_packed` gave; None: all of these."""
        dense = rows is None or _are_many(len(rows), packed.row_count)
        if dense and isinstance(packed, PackedVectors) and self._stays_packed(column):
            return PackedSelection(packed, rows)
        return self._reader.decode(column, packed, rows, counters)

    def holds_numbers(self, column: str) -> bool:
        """Whether a packed column is numbers, and no codes of a dictionary."""
        return self._reader.kind(column).is_number

    def number_type(self, column: str) -> pa.DataType | None:
        """Of a column of numbers that native calls read together with others; None of other columns."""
        kind = self._reader.kind(column)
        return kind.packed.place.type if self.is_mapped and kind.packed and kind.is_number else None

    def packed_columns(self, columns: Sequence[str]) -> list[PackedColumn] | None:
        """The columns, if native calls read them together."""
        return self._reader.packed_columns(columns)

    def select_rows(
        self,
        columns: Sequence[PackedColumn],
        kept: Sequence[bool],
        steps: Sequence[Step],
        vectors: NDArray[np.int64],
        rows: NDArray[np.int64] | None,
        *,
        located: bool,
    ) -> SelectedRows | int:
        """Which rows pass steps about columns of `packed_columns`; see `row_selection.select_rows`."""
        return self._reader.select_rows(columns, kept, steps, vectors, rows, located=located)

    def read_together(
        self,
        columns: Sequence[str],
        vectors: NDArray[np.int64],
        rows: NDArray[np.int64] | None,
    ) -> list[tuple[StoredValues, ReadCounters, int]]:
        """Values of each of several `packed_columns`, what they took, and bytes of strings; verified.

        `rows` are in `vectors`, each of which has one at least; None: all of their rows.
        """
        stays = self._keeps_encoded and (rows is None or _are_many(len(rows), len(vectors) * VECTOR_ROWS))
        requests = []
        for kind in map(self._reader.kind, columns):
            assert kind.packed is not None, "it is packed"
            requests.append(ColumnRequest(kind.packed, vectors, rows, stays and kind.is_number))
        return [
            (
                PackedSelection(answer.values, rows)
                if isinstance(answer.values, PackedVectors)
                else answer.values,
                answer.counters,
                answer.string_bytes,
            )
            for answer in self._reader.read_together(columns, requests)
        ]

    def string_lengths(self, column: str, counters: ReadCounters) -> NDArray[np.int64]:
        """Bytes of what each code of a dictionary column stands for."""
        return self._reader.string_lengths(column, counters)

    def dictionary(self, column: str, counters: ReadCounters) -> pa.Array[Any] | None:
        """What the column's codes stand for; None if it has no dictionary."""
        return self._reader.dictionary(column, counters)

    def string_bytes(
        self,
        column: str,
        packed: PackedVectors,
        rows: NDArray[np.int64] | None,
        counters: ReadCounters,
    ) -> int:
        """Bytes of the strings that `decode` would give; 0 of other columns."""
        return self._reader.string_bytes(column, packed, rows, counters)

    def fetch_vectors(self, column: str, rows: NDArray[np.int64], counters: ReadCounters) -> StoredValues:
        """Those rows; the vectors that hold them are read whole and verified."""
        if self._stays_packed(column):
            vectors = vectors_of(rows)
            if _are_many(len(rows), len(vectors) * VECTOR_ROWS):
                return self._select(column, vectors, rows, counters)
        return self._reader.fetch_vectors(column, rows, counters)

    def fetch_blocks(self, column: str, rows: NDArray[np.int64], counters: ReadCounters) -> StoredValues:
        """Those rows; only the blocks that hold them are read, which cannot be verified."""
        return self._reader.fetch_blocks(column, rows, counters)


def _are_many(rows: int, of: int) -> bool:
    return _SPARSEST * rows >= of
