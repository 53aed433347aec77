"""The column rowid of a table, which row of its version each one is, from 0; and rows chosen by that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.operators.scan.chunks import Piece
from bamquery.engine.sources.scan_predicates import Conjunct
from bamquery.engine.sources.scan_sources import NumberedTable
from bamquery.plan.nodes import ROW_NUMBER
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.reader import vectors_of
from bamquery.storage.statistics.predicate import Operator, RangePredicate

_LAST_ROW: Final = 2**62
"""Behind the last row of any table."""
_ANSWERED: Final[frozenset[Operator]] = frozenset({"=", "in", "<", "<=", ">", ">=", "is_null"})
"""Operators of conditions that tell which rows they choose, so that no number has to be looked at."""


@dataclass(frozen=True, eq=False)
class NumberSelection:
    """Rows chosen by their numbers: from `low` up to `high`, both included, and of these only `members`.

    `members` are ascending and unique; None: all from `low` to `high`.
    """

    low: int = 0
    high: int = _LAST_ROW
    members: NDArray[np.int64] | None = None

    def restrict(self, found: RangePredicate) -> NumberSelection:
        """The rows for which a condition on the number is true, too: one of those `is_answered` by it."""
        compared = found.members is not None or any(value.is_valid for value in found.values)
        if found.operator == "is_null" or not compared:
            return NumberSelection(0, -1)  # there is no row without a number, and none like null
        values = _without_repeats(found.ordered_values)
        if found.operator in ("=", "in"):
            kept = (
                values if self.members is None else np.intersect1d(values, self.members, assume_unique=True)
            )
            return NumberSelection(self.low, self.high, kept)
        bound = int(values[0])
        match found.operator:
            case "<":
                return NumberSelection(self.low, min(self.high, bound - 1), self.members)
            case "<=":
                return NumberSelection(self.low, min(self.high, bound), self.members)
            case ">":
                return NumberSelection(max(self.low, bound + 1), self.high, self.members)
            case _:
                return NumberSelection(max(self.low, bound), self.high, self.members)

    def chosen_within(self, begin: int, end: int) -> NDArray[np.int64] | tuple[int, int]:
        """Of rows begin to end - 1 those that are chosen: their numbers, or the first and behind the last."""
        begin, end = max(begin, self.low), min(end, self.high + 1)
        if self.members is None:
            return begin, max(begin, end)
        first, last = np.searchsorted(self.members, (begin, max(begin, end)))
        return self.members[first:last]


class RowNumbers:
    """The numbers of a table's rows, which no file has, and the rows that conditions on them choose."""

    def __init__(self, table: NumberedTable) -> None:
        self._first = {
            id(fragment): first
            for fragment, first in zip(table.snapshot.fragments, table.first_rows, strict=True)
        }
        self.column = table.row_number
        """Its place in the source's schema."""
        self._selection: NumberSelection | None = None
        self._vectors: dict[int, NDArray[np.int64]] = {}
        """Of fragments, those that have rows which are chosen: asked for again when chunks are cut."""

    def density(self, fragments: Sequence[Fragment]) -> float | None:
        """Rows for each vector that has one of those chosen one by one; None where they are not listed."""
        if self._selection is None or self._selection.members is None:
            return None
        vectors = sum(
            len(self.keep_vectors(one, np.arange(one.vector_count, dtype=np.int64))) for one in fragments
        )
        return self.listed_rows / max(vectors, 1)

    @property
    def selects(self) -> bool:
        """Whether some condition was answered by the numbers."""
        return self._selection is not None

    @property
    def listed_rows(self) -> int:
        """How many rows are chosen one by one."""
        members = None if self._selection is None else self._selection.members
        return 0 if members is None else len(members)

    def answer(self, conjuncts: Sequence[Conjunct]) -> list[Conjunct]:
        """Choose rows by those conditions that numbers answer; the others."""
        others = []
        for conjunct in conjuncts:
            if self._answers(conjunct):
                selection = self._selection or NumberSelection()
                self._selection = selection.restrict(conjunct.ranges[0])
                self._vectors.clear()
            else:
                # Zone maps know nothing of numbers.
                about_them = conjunct.columns == (self.column,)
                others.append(conjunct.without_ranges() if about_them else conjunct)
        return others

    def _answers(self, conjunct: Conjunct) -> bool:
        ranges = conjunct.ranges
        return conjunct.columns == (self.column,) and len(ranges) == 1 and ranges[0].operator in _ANSWERED

    def batch(self, pieces: Sequence[Piece], rows: Sequence[NDArray[np.int64] | None]) -> pa.RecordBatch:
        """The numbers of the rows of those ids, a piece each; where None, of all of a piece's vectors."""
        numbers = []
        for piece, ids in zip(pieces, rows, strict=True):
            found = piece.row_ids(np.arange(piece.rows, dtype=np.int64)) if ids is None else ids
            numbers.append(found + self._first[id(piece.fragment)])
        joined = np.concatenate(numbers) if numbers else np.empty(0, np.int64)
        return pa.record_batch([pa.array(joined, pa.int64())], [ROW_NUMBER])

    def keep_vectors(self, fragment: Fragment, vectors: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of a fragment's vectors that have rows which are chosen; `vectors` ascending."""
        if self._selection is None:
            return vectors
        chosen = self._vectors.get(id(fragment))
        if chosen is None:
            chosen = self._vectors[id(fragment)] = self._chosen_vectors(fragment, self._selection)
        return chosen if len(vectors) == fragment.vector_count else vectors[_is_among(vectors, chosen)]

    def _chosen_vectors(self, fragment: Fragment, selection: NumberSelection) -> NDArray[np.int64]:
        first = self._first[id(fragment)]
        found = selection.chosen_within(first, first + fragment.rows)
        if isinstance(found, tuple):
            begin, end = found[0] - first, found[1] - first
            stop = -(-end // VECTOR_ROWS) if begin < end else 0
            return np.arange(begin // VECTOR_ROWS, stop, dtype=np.int64)
        return vectors_of(found - first)

    def rows_of(self, piece: Piece) -> NDArray[np.int64] | None:
        """Ids of the chosen rows among those of the piece's vectors, ascending; None where they all are."""
        if self._selection is None:
            return None
        first = self._first[id(piece.fragment)]
        found = self._selection.chosen_within(first + piece.begin, first + piece.end)
        if isinstance(found, tuple):
            begin, end = found[0] - first, found[1] - first
            if begin <= piece.begin and end >= piece.end:
                return None
            ids = piece.row_ids(np.arange(piece.rows, dtype=np.int64))
            low, high = np.searchsorted(ids, (begin, end))
            return None if high - low == len(ids) else ids[low:high]
        ids = found - first
        if len(piece.vectors) in {piece.total_vectors, len(vectors_of(ids))}:
            return ids  # none of their vectors was pruned
        return ids[_is_among(ids // VECTOR_ROWS, piece.vectors)]


def _without_repeats(ascending: NDArray[np.int64]) -> NDArray[np.int64]:
    """The different values. `np.unique` does not know that they are in order, and takes 0.2 µs a value."""
    return ascending[np.diff(ascending, prepend=ascending[:1] - 1) > 0]


def _is_among(values: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the values are among others, which ascend."""
    if not len(ascending):
        return np.zeros(len(values), bool)
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    found: NDArray[np.bool_] = ascending[places] == values
    return found
