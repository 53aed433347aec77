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
    piece. Memory: 24 bytes a row while this is made and 16 from then on, twice the column (validity, offsets
    and values) while it is read, and two pieces.
    """

    def __init__(
        self, fragments: Sequence[Fragment], order: NDArray[np.int64], cancelled: Callable[[], bool]
    ) -> None:
        """`order`: row numbers, counted over all fragments; each at most once."""
        self._fragments = fragments
        self._cancelled = cancelled
        by_row = np.argsort(order, kind="stable")
        self._ascending = order[by_row]
        self._places: NDArray[np.int64] = np.empty(len(order), np.int64)
        self._places[by_row] = np.arange(len(order))

    @property
    def rows(self) -> int:
        """As many as the order has."""
        return len(self._places)

    def column(self, index: int) -> Iterator[pa.Array[Any]]:
        """Chunks of a piece's rows.

        Raises:
            CorruptionError: a vector does not match its checksum. CancelledError: it was cancelled.
        """
        gathered = pa.concat_arrays(list(self._gather(index)), memory_pool=pa.system_memory_pool())
        step = max(1, PIECE_BYTES * self.rows // max(gathered.nbytes, 1))
        for start in range(0, self.rows, step):
            _check(self._cancelled)
            yield gathered.take(self._places[start : start + step])

    def _gather(self, index: int) -> Iterator[pa.Array[Any]]:
        """The values at the rows wanted, by ascending row."""
        first = 0
        for fragment in self._fragments:
            name = fragment.schema.field(index).name
            span = _vectors_a_piece(fragment, index) * VECTOR_ROWS
            with _open_reader(fragment) as reader:
                for start in range(first, first + fragment.rows, span):
                    _check(self._cancelled)
                    end = min(start + span, first + fragment.rows)
                    low, high = np.searchsorted(self._ascending, [start, end])
                    if low < high:
                        yield reader.fetch_vectors(name, self._ascending[low:high] - first, ReadCounters())
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
