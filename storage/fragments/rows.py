"""Rows of existing fragments as a source of new ones: in their order, or in a new one.

Everything is read through mapped files, whole vectors at a time, and checked against the checksums, so a
damaged fragment stops the rewriting instead of being copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.errors import CancelledError
from bamquery.statement_context.cancellation import check_cancelled
from bamquery.storage.format.layout import VECTOR_ROWS, vector_count
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.plain_size import column_bytes
from bamquery.storage.fragments.reader import FragmentReader
from bamquery.storage.fragments.schema_evolution import Evolution
from bamquery.storage.fragments.writer import RowSource
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader

PIECE_BYTES: Final = 16 << 20
"""About what one chunk of a column takes."""


@dataclass(frozen=True)
class ConcatenatedRows:
    """Several sources one after the other."""

    sources: Sequence[RowSource]

    @property
    def rows(self) -> int:
        """Rows of all."""
        return sum(source.rows for source in self.sources)

    def column(self, index: int) -> Iterator[pa.Array[Any]]:
        """The chunks of each in turn."""
        for source in self.sources:
            yield from source.column(index)


@dataclass(frozen=True)
class FragmentRows:
    """The rows of one fragment, in order. Memory: one piece."""

    fragment: Fragment
    cancelled: Callable[[], bool] = lambda: False

    @property
    def rows(self) -> int:
        """The fragment's."""
        return self.fragment.rows

    def column(self, index: int) -> Iterator[pa.Array[Any]]:
        """One chunk a piece.

        Raises:
            CorruptionError: a vector does not match its checksum. CancelledError: it was cancelled.
        """
        name = self.fragment.schema.field(index).name
        with _open_reader(self.fragment) as reader:
            step = _vectors_a_piece(self.fragment, index)
            for start in range(0, vector_count(self.rows), step):
                _check(self.cancelled)
                vectors = np.arange(start, min(start + step, vector_count(self.rows)))
                yield reader.stream(name, vectors, ReadCounters())


@dataclass(frozen=True)
class AgedRows:
    """The rows of a fragment that is older than some of the table's columns: those have their first value.

    `places` has for each column of the table its place in the fragment, or the value that it has throughout.
    """

    stored: FragmentRows
    places: Sequence[int | pa.Scalar[Any]]

    @property
    def rows(self) -> int:
        """The fragment's."""
        return self.stored.rows

    def column(self, index: int) -> Iterator[pa.Array[Any]]:
        """As `FragmentRows.column`, by position in the table."""
        place = self.places[index]
        if isinstance(place, int):
            yield from self.stored.column(place)
            return
        step = PIECE_BYTES // 16
        for start in range(0, self.rows, step):
            _check(self.stored.cancelled)
            value: Any = place
            yield pa.repeat(value, min(step, self.rows - start))


def table_rows(
    fragment: Fragment,
    schema: pa.Schema,
    evolution: Evolution,
    cancelled: Callable[[], bool] = lambda: False,
) -> FragmentRows | AgedRows:
    """The fragment's rows with the columns of its table, which has `schema`."""
    stored = FragmentRows(fragment, cancelled)
    if fragment.schema.names == schema.names:
        return stored
    known = {name: place for place, name in enumerate(fragment.schema.names)}

    def place(index: int) -> int | pa.Scalar[Any]:
        field = schema.field(index)
        if field.name in known:
            return known[field.name]
        initial = evolution.rule(index).initial
        return pa.scalar(None, field.type) if initial is None else initial

    return AgedRows(stored, [place(index) for index in range(len(schema))])


class PermutedRows:
    """Rows of several fragments in a given order.

    A column is gathered as a whole, fragment by fragment in ascending order, and then put in order piece by
    piece; one that takes too much, part by part, each of which reads the column anew. Memory: a row number
    and 4 bytes for each row, 4 more for each row of the fragments while this is made, twice what is gathered
    (validity, offsets and values) while a column is read, and two pieces.
    """

    def __init__(
        self,
        fragments: Sequence[Fragment],
        order: NDArray[Any],
        cancelled: Callable[[], bool],
        most_bytes: int | None = None,
    ) -> None:
        """`order`: row numbers, counted over all fragments; each at most once.

        `most_bytes`: of a column that are gathered at once.
        """
        self._fragments = fragments
        self._order = order
        self._cancelled = cancelled
        self._most_bytes = most_bytes
        self._ascending = np.sort(order)
        places = np.empty(int(self._ascending[-1]) + 1 if len(order) else 0, np.uint32)
        places[self._ascending] = np.arange(len(order), dtype=np.uint32)
        self._places = places[order]

    @property
    def rows(self) -> int:
        """As many as the order has."""
        return len(self._order)

    def column(self, index: int) -> Iterator[pa.Array[Any]]:
        """Chunks of a piece's rows.

        Raises:
            CorruptionError: a vector does not match its checksum. CancelledError: it was cancelled.
        """
        parts = self._parts(index)
        gathered = self._gathered(index) if parts == 1 else None
        if gathered is None:
            step = -(-self.rows // max(parts, 2))
            for start in range(0, self.rows, step):
                part = self._order[start : start + step]
                rows = PermutedRows(self._fragments, part, self._cancelled, self._most_bytes)
                yield from rows.column(index)
            return
        step = max(1, PIECE_BYTES * self.rows // max(gathered.nbytes, 1))
        for start in range(0, self.rows, step):
            _check(self._cancelled)
            yield gathered.take(self._places[start : start + step])

    def _parts(self, index: int) -> int:
        """In so many the column can be gathered, if its rows are like the others."""
        if self._most_bytes is None:
            return 1
        rows = sum(fragment.rows for fragment in self._fragments)
        size = sum(column_bytes(fragment, index) for fragment in self._fragments) * self.rows // max(rows, 1)
        return min(max(-(-size // max(self._most_bytes, 1)), 1), self.rows)

    def _gathered(self, index: int) -> pa.Array[Any] | None:
        """The column's values by ascending row; None where they take too much: others are shorter."""
        pieces: list[pa.Array[Any]] = []
        size = 0
        for piece in self._gather(index):
            pieces.append(piece)
            size += piece.indices.nbytes if isinstance(piece, pa.DictionaryArray) else piece.nbytes
            if self._most_bytes is not None and size > self._most_bytes and self.rows > 1:
                return None
        return pa.concat_arrays(pieces, memory_pool=pa.system_memory_pool())

    def _gather(self, index: int) -> Iterator[pa.Array[Any]]:
        first = 0
        for fragment in self._fragments:
            name = fragment.schema.field(index).name
            span = _vectors_a_piece(fragment, index) * VECTOR_ROWS
            with _open_reader(fragment) as reader:
                for start in range(first, first + fragment.rows, span):
                    _check(self._cancelled)
                    end = min(start + span, first + fragment.rows)
                    low, high = np.searchsorted(self._ascending, np.array([start, end], self._order.dtype))
                    if low < high:
                        rows = self._ascending[low:high].astype(np.int64) - first
                        yield reader.fetch_vectors(name, rows, ReadCounters())
            first += fragment.rows


def _vectors_a_piece(fragment: Fragment, index: int) -> int:
    return max(1, PIECE_BYTES * vector_count(fragment.rows) // max(column_bytes(fragment, index), 1))


def _check(cancelled: Callable[[], bool]) -> None:
    check_cancelled()
    if cancelled():
        raise CancelledError("the rewriting of fragments was cancelled")


@contextmanager
def _open_reader(fragment: Fragment) -> Iterator[FragmentReader]:
    reader = MappedReader(fragment.path, fragment.data_bytes)
    try:
        yield FragmentReader(fragment, reader)
    finally:
        reader.close()
