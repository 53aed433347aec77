"""Rows found by their keys, by kernels of engine/kernels/keys: a table of the first row of each key."""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.types import NullOrder, Order, TypeId

from bamquery.engine.cuda.frames import column_from_buffers
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.keys.key_columns import MOST_KEYS, pack_column, pack_columns
from bamquery.engine.cuda.keys.key_kernels import fill_memory, new_memory, start_kernel
from bamquery.engine.cuda.keys.row_pairs import NO_RULE, FoundPairs, RowCounts, RowPairs, Runs, pack_rule

_FILE: Final = "keys/join_table"
_TABLE: Final = struct.Struct("<QII")
"""A WordTable or a RowTable of join_table.hpp."""
_WORD_BYTES: Final = 8
"""Of a key that stands in the table itself."""
_WORD_PLACE: Final = 16
_ROW_PLACE: Final = 4
_LEAST_PLACES: Final = 64
_LARGEST_SHARE: Final = 8
"""Part of `gpu_memory_limit` that keys in a table may take; a table without them takes a quarter of that."""
_NO_ROW, _NO_OTHER_ROW = 2**32 - 1, 2**32 - 2
"""Of build and of probe rows whose last columns nobody has: no two are equal."""
_INT32: Final = pa.int32()
_BOOL: Final = pa.bool_()


class KeyTable:
    """Build rows of at least one key column; thread-safe.

    Key columns are strings or of fixed width, of one type on both sides; floats are their bits, with one NaN
    and one zero.

    Attributes:
        rows: how many there are, those left out with them that have a null which equals nothing.
    """

    def __init__(
        self, kernels: Kernels, columns: Sequence[plc.Column], rows: int, nulls_equal: Sequence[bool]
    ) -> None:
        """`nulls_equal`: for each column whether a null equals another.

        Raises:
            MemoryLimitError: the table needs more than there is.
        """
        self.rows: Final = rows
        self._kernels = kernels
        self._types = [column.type() for column in columns]
        self._last_columns: KeyTable | None = None
        if len(columns) > MOST_KEYS:
            first = MOST_KEYS - 1
            self._last_columns = KeyTable(kernels, columns[first:], rows, nulls_equal[first:])
            nulls_equal = [*nulls_equal[:first], True]
        self._columns = self._fold(columns, rows, _NO_ROW)
        self._unequal = sum(1 << i for i, equal in enumerate(nulls_equal) if not equal)
        self._places = _place_count(rows)
        words_fit = _fits(kernels, (self._places + 1) * _WORD_PLACE)
        self._words = words_fit and _has_words(self._columns, equal=nulls_equal[0])
        self._packed = pack_column(self._columns[0]) if self._words else pack_columns(self._columns)
        size = (self._places + 1) * _WORD_PLACE if self._words else self._places * _ROW_PLACE
        self._memory: Final = new_memory(kernels, size)
        fill_memory(kernels, self._memory, 0xFF)
        self._table = _TABLE.pack(self._memory.ptr, self._places - 1, self._unequal)
        self._repeated = kernels.session.read_back.take(1)
        self._unique: bool | None = None
        self._runs: Runs | None = None
        self._lock = threading.Lock()
        name = "join_enter_words" if self._words else "join_enter_rows"
        what = (self._packed, rows, self._table, self._repeated.address)
        start_kernel(kernels, _FILE, name, *what, items=rows)

    @property
    def nbytes(self) -> int:
        """Memory held beside the key columns."""
        folded, runs = self._last_columns, self._runs
        more = 0 if runs is None else runs.nbytes
        return int(self._memory.size) + more + (0 if folded is None else folded.nbytes + 4 * self.rows)

    @property
    def is_unique(self) -> bool:
        """Whether no two rows have the same key; the host waits once."""
        with self._lock:
            if self._unique is None:
                (repeated,) = self._kernels.session.read_back.read(self._repeated)
                self._unique = not repeated
            return self._unique

    def first_rows(self, columns: Sequence[plc.Column], rows: int, nobody: int) -> plc.Column:
        """For each probe row the first build row with its key as int32, `nobody` where there is none."""
        return self._first_rows(self._probe_columns(columns, rows), rows, nobody)

    def has_rows(self, columns: Sequence[plc.Column], rows: int) -> plc.Column:
        """For each probe row whether a build row has its key, as booleans."""
        flags = new_memory(self._kernels, rows)
        self._find(self._probe_columns(columns, rows), rows, 0, NO_RULE, None, flags.ptr, None, None)
        return column_from_buffers(_BOOL, rows, flags)

    def select(self, columns: Sequence[plc.Column], rows: int, *, alone: bool) -> plc.Column | None:
        """Ascending int32 positions of the probe rows with a partner, or without; None: of all.

        The host waits for their number.
        """
        counts = RowCounts(self._kernels, rows)
        found = self._count(columns, counts, pack_rule(None, alone=alone, partner=not alone))
        chosen = counts.total()
        return None if chosen == rows else counts.select(found, self.rows, chosen, alone=alone)

    def pairs(self, columns: Sequence[plc.Column], rows: int, *, outer: bool) -> FoundPairs | RowPairs:
        """Probe rows and their partners; `outer`: those without one come, too.

        The host waits for their number, but where it is known: of an outer join with keys that come once.
        """
        kernels = self._kernels
        if self.is_unique:
            if outer:
                return RowPairs(0, rows, None, self.first_rows(columns, rows, self.rows))
            counts = RowCounts(kernels, rows)
            found = self._count(columns, counts, pack_rule(None, alone=False, partner=True))
            chosen = counts.total()
            if chosen == rows:
                return RowPairs(0, rows, None, found)
            return RowPairs(0, rows, *counts.select_pairs(found, self.rows, chosen))
        runs = self._rows_by_key()
        counts = RowCounts(kernels, rows, with_offsets=True)
        found = self._count(columns, counts, pack_rule(runs, alone=outer))
        total = counts.total()
        if outer and total == rows:  # a run that is there is of one row
            return RowPairs(0, rows, None, found)
        return FoundPairs(kernels, counts, total, found, self.rows, runs, self.rows)

    def _count(self, columns: Sequence[plc.Column], counts: RowCounts, rule: bytes) -> plc.Column:
        """What `first_rows` gives, and how many pairs each row has."""
        rows, found = counts.rows, new_memory(self._kernels, 4 * counts.rows)
        self._find(
            self._probe_columns(columns, rows), rows, self.rows, rule, found.ptr, None, *counts.targets
        )
        counts.add_up()
        return column_from_buffers(_INT32, rows, found)

    def _first_rows(self, columns: Sequence[plc.Column], rows: int, nobody: int) -> plc.Column:
        found = new_memory(self._kernels, 4 * rows)
        self._find(columns, rows, nobody, NO_RULE, found.ptr, None, None, None)
        return column_from_buffers(_INT32, rows, found)

    def _find(
        self,
        columns: Sequence[plc.Column],
        rows: int,
        nobody: int,
        rule: bytes,
        *targets: int | None,
    ) -> None:
        """See join_find_words; of columns that are folded."""
        if self._words:
            what = (pack_column(columns[0]), rows, self._table, nobody, rule, *targets)
            start_kernel(self._kernels, _FILE, "join_find_words", *what, items=rows)
        else:
            keys = (pack_columns(columns), rows, self._table, self._packed, nobody, rule, *targets)
            start_kernel(self._kernels, _FILE, "join_find_rows", *keys, items=rows)

    def _probe_columns(self, columns: Sequence[plc.Column], rows: int) -> list[plc.Column]:
        same = [column.type() for column in columns] == self._types
        assert same or not rows or not self.rows, "keys of both sides are of one type"
        return self._fold(columns, rows, _NO_OTHER_ROW)

    def _fold(self, columns: Sequence[plc.Column], rows: int, nobody: int) -> list[plc.Column]:
        """As many columns as kernels take: the last of more become one, of the first rows with them."""
        if self._last_columns is None:
            return list(columns)
        first = MOST_KEYS - 1
        return [*columns[:first], self._last_columns.first_rows(columns[first:], rows, nobody)]

    def _rows_by_key(self) -> Runs:
        """Build rows by key, those of one key ascending; made once."""
        with self._lock:
            if self._runs is None:
                kernels, rows = self._kernels, self.rows
                firsts = self._first_rows(self._columns, rows, rows)
                order = plc.sorting.stable_sorted_order(
                    plc.Table([firsts]),
                    [Order.ASCENDING],
                    [NullOrder.AFTER],
                    stream=kernels.stream,
                    mr=kernels.memory,
                )
                self._runs = Runs.of_order(kernels, order, firsts, rows)
            return self._runs


def _has_words(columns: Sequence[plc.Column], *, equal: bool) -> bool:
    """Whether the table may have keys beside rows; then nulls find nobody."""
    if len(columns) > 1 or columns[0].type().id() == TypeId.STRING:
        return False
    null_finds_null = equal and columns[0].null_count() > 0
    return not null_finds_null and plc.types.size_of(columns[0].type()) <= _WORD_BYTES


def _fits(kernels: Kernels, size: int) -> bool:
    """Whether so large a table leaves the memory limit to others."""
    limit = kernels.session.limit
    return limit is None or size <= limit // _LARGEST_SHARE


def _place_count(rows: int) -> int:
    """A power of two, at least twice as many."""
    return max(_LEAST_PLACES, 1 << max(2 * rows - 1, 0).bit_length())
