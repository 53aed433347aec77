"""Frames of which some columns are packed still: programs decode them, a vector at a time, as they go."""

# ruff: noqa: PLC0415 (what knows of stored columns is imported where there is one)

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.frames import make_batch, take_batch
from bamquery.engine.cpu.kernels import Column, nulls, take

if TYPE_CHECKING:
    from bamquery.storage.encodings.packed.selection import PackedSelection

SPARSEST: Final = 8
"""Part of a vector's rows below which these are decoded by themselves."""


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """Rows by the vectors that they are of.

    Attributes:
        vectors: ascending numbers.
        counts: rows of each, none 0.
        rows: their ids; None: all of the vectors' rows.
    """

    vectors: NDArray[np.int64]
    counts: NDArray[np.int64]
    rows: NDArray[np.int64] | None


class StoredFrame:
    """Columns of one number of rows, in place of a record batch; thread-safe."""

    def __init__(self, columns: Sequence[Column | PackedSelection], rows: int) -> None:
        self.columns: Final = tuple(columns)
        self.num_rows: Final = rows
        self._lock = threading.Lock()
        self._decoded: dict[int, Column] = {}
        self._batches: Batches | None = None

    def column(self, index: int) -> Column:
        """A column's values, decoded once."""
        found = self.columns[index]
        if isinstance(found, pa.Array):
            return found
        with self._lock:
            if index not in self._decoded:
                self._decoded[index] = found.decode()
            return self._decoded[index]

    def packed(self, index: int) -> PackedSelection | None:
        """A column as it is stored, if it is, and goes by the frame's batches."""
        found = self.columns[index]
        if isinstance(found, pa.Array) or index in self._decoded:
            return None
        first = self._first
        same = found.rows is first.rows
        if not same and found.rows is not None and first.rows is not None:
            same = np.array_equal(found.rows, first.rows)
        elif same and found.rows is None:
            same = np.array_equal(found.packed.vectors, first.packed.vectors)
        return found if same else None

    @property
    def batches(self) -> Batches:
        """How the rows of its packed columns, of which there is one, are those of vectors."""
        if self._batches is None:
            first = self._first
            if first.rows is None:
                self._batches = Batches(first.packed.vectors, first.packed.rows, None)
            else:
                from bamquery.storage.fragments.reader import count_by_vector

                vectors, counts = count_by_vector(first.rows)
                self._batches = Batches(vectors, counts, first.rows)
        return self._batches

    @property
    def _first(self) -> PackedSelection:
        return next(column for column in self.columns if not isinstance(column, pa.Array))

    def batch(self) -> pa.RecordBatch:
        """All columns decoded."""
        return make_batch([self.column(i) for i in range(len(self.columns))], self.num_rows)

    def needed(self, columns: Collection[int]) -> pa.RecordBatch:
        """A batch with these columns, in their places; others are nulls without a type."""
        found = [
            self.column(i) if i in columns else nulls(self.num_rows, pa.null())
            for i in range(len(self.columns))
        ]
        return make_batch(found, self.num_rows)

    def take(self, positions: NDArray[np.int64]) -> pa.RecordBatch | StoredFrame:
        """The rows at those positions, still packed where they ascend and are not too few."""
        if len(positions) > 1 and not (positions[1:] > positions[:-1]).all():
            return take_batch(self.batch(), positions)
        if len(positions) == self.num_rows:  # ascending: they are all
            return self
        from bamquery.storage.format.layout import VECTOR_ROWS
        from bamquery.storage.fragments.reader import vectors_of

        ids = self._first.ids_at(positions)
        sparse = SPARSEST * len(ids) < len(vectors_of(ids)) * VECTOR_ROWS
        found: list[Column | PackedSelection] = []
        for i, column in enumerate(self.columns):
            if not isinstance(column, pa.Array) and i not in self._decoded:
                chosen = column.take(ids)
                found.append(chosen.decode() if sparse else chosen)
            else:
                found.append(take(self.column(i), positions))
        return as_frame(found, len(positions))

    @property
    def nbytes(self) -> int:
        """Memory that its rows occupy once they are decoded."""
        return sum(column.nbytes for column in self.columns)


def as_frame(columns: Sequence[Column | PackedSelection], rows: int) -> pa.RecordBatch | StoredFrame:
    """A record batch where no column is packed."""
    values = [column for column in columns if isinstance(column, pa.Array)]
    return make_batch(values, rows) if len(values) == len(columns) else StoredFrame(columns, rows)


def whole_batch(frame: pa.RecordBatch | StoredFrame) -> pa.RecordBatch:
    """The frame as a record batch."""
    return frame.batch() if isinstance(frame, StoredFrame) else frame


def needed_batch(frame: pa.RecordBatch | StoredFrame, columns: Collection[int]) -> pa.RecordBatch:
    """A record batch with these columns of the frame at least."""
    return frame.needed(columns) if isinstance(frame, StoredFrame) else frame
