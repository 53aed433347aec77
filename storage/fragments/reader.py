"""Reads columns of one fragment through one block reader, in the three ways the planner chooses from."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bamquery import _native
from bamquery.errors import CorruptionError
from bamquery.storage.encodings.fsst.column import FsstColumn
from bamquery.storage.encodings.packed.column import PackedColumn
from bamquery.storage.encodings.packed.column_sets import ColumnRequest, ReadColumn, read_columns
from bamquery.storage.encodings.packed.row_selection import SelectedRows, Step, select_rows
from bamquery.storage.encodings.packed.vectors import PackedVectors
from bamquery.storage.encodings.stored_vectors import StoredVectors
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.column_kind import ColumnKind
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.readers.block_reader import BlockReader, ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader


class FragmentReader:
    """Columns of a fragment as arrays of the schema's types; thread-safe, as its block reader is.

    `vectors` and `rows` are int64, ascending, unique and within the fragment. All methods raise
    CorruptionError, naming file, column and vector, where bytes are not those that were written, and
    StorageError where they cannot be read. Counters are the calling thread's.
    """

    def __init__(
        self,
        fragment: Fragment,
        reader: BlockReader,
        verify: bool = True,
        *,
        keeps_dictionaries: bool = False,
    ) -> None:
        """Read `fragment` through `reader`; without `verify`, checksums of whole vectors are not compared.

        `keeps_dictionaries`: strings that have a dictionary come as places in it.
        """
        self._fragment = fragment
        self._reader = reader
        self._verify = verify
        self._keeps_dictionaries = keeps_dictionaries
        self.is_mapped: Final = isinstance(reader, MappedReader)
        """Whether native calls read its packed columns together."""

    def stream(self, column: str, vectors: NDArray[np.int64], counters: ReadCounters) -> pa.Array[Any]:
        """The rows of `vectors`, one after the other; vectors next to each other make large requests."""
        stored = self._fragment.column(column)
        array = stored.read_vectors(self._reader, vectors, counters, verify=self._verify)
        return self._finish(column, array, counters)

    def fetch_vectors(self, column: str, rows: NDArray[np.int64], counters: ReadCounters) -> pa.Array[Any]:
        """The values at `rows`, from whole vectors, so that they can be verified."""
        stored = self._fragment.column(column)
        if isinstance(stored, PackedColumn):
            array = stored.fetch_rows(self._reader, rows, counters, verify=self._verify)
            return self._finish(column, array, counters)
        vectors, positions = locate(rows)
        if isinstance(stored, FsstColumn):
            return self.decode(column, self.read_packed(column, vectors, counters), rows, counters)
        array = self.stream(column, vectors, counters)
        if len(array) == len(rows):
            return array
        indices: Any = pa.array(positions)
        taken: Any = pc.take(array, indices, boundscheck=False)
        found: pa.Array[Any] = taken
        return found

    def fetch_blocks(self, column: str, rows: NDArray[np.int64], counters: ReadCounters) -> pa.Array[Any]:
        """The values at `rows`, from only the blocks that hold them; checksums cannot be compared."""
        array = self._fragment.column(column).read_rows(self._reader, rows, counters)
        return self._finish(column, array, counters)

    def is_packed(self, column: str) -> bool:
        """Whether the column is encoded, so that `read_packed` and `decode` can be asked for it."""
        return self._fragment.kind(column).is_encoded

    def kind(self, column: str) -> ColumnKind:
        """How the column is stored."""
        return self._fragment.kind(column)

    def read_packed(self, column: str, vectors: NDArray[np.int64], counters: ReadCounters) -> StoredVectors:
        """The rows of `vectors` as they are stored, of a column that is encoded."""
        stored = self._fragment.column(column)
        assert isinstance(stored, (PackedColumn, FsstColumn))
        return stored.read_packed(self._reader, vectors, counters, verify=self._verify)

    def decode(
        self,
        column: str,
        packed: StoredVectors,
        rows: NDArray[np.int64] | None,
        counters: ReadCounters,
    ) -> pa.Array[Any]:
        """Values of what `read_packed` gave: those of ascending rows, which are among its own; None: all."""
        array = packed.decode() if rows is None else packed.pick(rows)
        return self._finish(column, array, counters)

    def string_bytes(
        self,
        column: str,
        packed: PackedVectors,
        rows: NDArray[np.int64] | None,
        counters: ReadCounters,
    ) -> int:
        """Bytes of strings that `decode` would give; 0 of columns of another type."""
        if not self._fragment.sizes(column).has_strings:
            return 0
        dictionary: Any = self.dictionary(column, counters)
        lengths: Any = pc.binary_length(dictionary)
        codes: Any = packed.decode() if rows is None else packed.pick(rows)
        if not len(lengths) or codes.null_count == len(codes):
            return 0
        # Codes that are none are found out where strings are made of them.
        return int(lengths.to_numpy().take(codes.drop_null().to_numpy(), mode="clip").sum())

    def packed_columns(self, columns: Sequence[str]) -> list[PackedColumn] | None:
        """Columns that native calls read together, if all are packed and the file is mapped."""
        found = []
        for column in columns:
            packed = self.packed_column(column)
            if packed is None:
                return None
            found.append(packed)
        return found

    def packed_column(self, column: str) -> PackedColumn | None:
        """The one column, if native calls read it together with others."""
        return self._fragment.kind(column).packed if self.is_mapped else None

    def read_together(self, columns: Sequence[str], requests: Sequence[ColumnRequest]) -> list[ReadColumn]:
        """What requests for columns of `packed_columns` give; see `read_columns`."""
        assert isinstance(self._reader, MappedReader)
        coded = [i for i, column in enumerate(columns) if self._fragment.kind(column).is_coded]
        if not coded:
            return read_columns(self._reader, requests, verify=self._verify)
        read = {i: ReadCounters() for i in coded}  # of dictionaries
        for i in coded:
            requests[i].lengths = self.string_lengths(columns[i], read[i])
        found = read_columns(self._reader, requests, verify=self._verify)
        for i, own in read.items():
            answer = found[i]
            if not isinstance(answer.values, PackedVectors):
                answer.values = self._finish(columns[i], answer.values, own, checked=True)
            answer.counters += own
        return found

    def string_lengths(self, column: str, counters: ReadCounters) -> NDArray[np.int64]:
        """Bytes of what each code of a dictionary column stands for."""
        return self._fragment.string_lengths(column, self._reader, counters)

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
        assert isinstance(self._reader, MappedReader)
        return select_rows(
            self._reader, columns, kept, steps, vectors, rows, verify=self._verify, located=located
        )

    def dictionary(self, column: str, counters: ReadCounters) -> pa.Array[Any] | None:
        """What the column's codes stand for; None if it has no dictionary."""
        if not self._fragment.sizes(column).has_dictionary:
            return None
        return self._fragment.dictionary(column, self._reader, counters)

    def _finish(
        self, column: str, array: pa.Array[Any], counters: ReadCounters, *, checked: bool = False
    ) -> pa.Array[Any]:
        """The column of stored values: `checked` codes are all in the dictionary."""
        if not self._fragment.sizes(column).has_dictionary:
            return array
        values = self._fragment.dictionary(column, self._reader, counters)
        try:
            # Checks that every index is in range: bytes that were not verified must not make readers crash.
            found: Any = pa.DictionaryArray.from_arrays(array, values, safe=not checked)
        except pa.ArrowException as error:
            raise CorruptionError(
                f'column "{column}" refers to values beyond its dictionary', self._fragment.path
            ) from error
        kept = self._keeps_dictionaries
        kind = self._fragment.schema.field(self._fragment.column_index(column)).type
        is_dictionary = kept or pa.types.is_dictionary(kind)
        decoded: pa.Array[Any] = found if is_dictionary else found.dictionary_decode()
        return decoded


class _Located(threading.local):
    """What a thread located last: the columns of a chunk are read for the same rows, one after another."""

    rows: NDArray[np.int64] | None = None
    vectors: NDArray[np.int64] | None = None
    counts: NDArray[np.int64] | None = None
    positions: NDArray[np.int64] | None = None


_located = _Located()


def vectors_of(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The vectors that hold ascending `rows`. The answer is shared: rows and answer stay as they are."""
    if rows is not _located.rows or _located.vectors is None:
        _located.rows, _located.positions = rows, None
        _located.vectors, _located.counts = _native.rows_by_vector(rows)
    return _located.vectors


def count_by_vector(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The vectors that hold ascending `rows`, and how many of these each has. The answer is shared."""
    vectors = vectors_of(rows)
    assert _located.counts is not None
    return vectors, _located.counts


def locate(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The vectors that hold ascending `rows`, and where the rows are in these, laid end to end.

    The answer is shared: rows and answer stay as they are.
    """
    vectors = vectors_of(rows)
    if _located.positions is None:
        assert _located.counts is not None
        skipped = vectors - np.arange(len(vectors))
        if len(vectors) and skipped[-1] == skipped[0]:
            _located.positions = rows - VECTOR_ROWS * skipped[0]
        else:
            _located.positions = rows - VECTOR_ROWS * np.repeat(skipped, _located.counts)
    return vectors, _located.positions
