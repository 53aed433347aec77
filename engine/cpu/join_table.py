"""Rows found by their keys: a table of buckets over numpy arrays, probed for many rows at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu import decimals
from bamquery.engine.cpu.grouping import canonical
from bamquery.engine.cpu.hashing import hash_rows
from bamquery.engine.cpu.kernels import Column, booleans_of, compute, take, valid, values_of

Positions = NDArray[np.int64]
Portion = tuple[int, Positions, Positions]

_PORTION: Final = 1 << 18
"""Pairs, and rows to look up, that are dealt with at once."""
_SPARSEST: Final = 8
"""Buckets for each row up to which a bucket for every integer in between is worth it."""
_SMALL_TABLE: Final = 1 << 16


class CpuJoinTable:
    """See `bamquery.engine.device.JoinTable`.

    A row's bucket is its key less the lowest one where the key is one integer and the integers are close
    to each other: then all rows of a bucket are equal. Else it is a part of the hash of all keys, and pairs
    are compared.
    """

    def __init__(self, keys: pa.RecordBatch, nulls_equal: Sequence[bool]) -> None:
        self._nulls_equal = tuple(nulls_equal)
        self._columns = [canonical(column) for column in keys.columns]
        usable = self._usable(self._columns, keys.num_rows)
        rows = np.arange(keys.num_rows) if usable is None else np.flatnonzero(usable)
        self._range = _dense_range(self._columns, rows, any(nulls_equal))
        self._hashes: NDArray[np.uint64] | None = None
        if self._range is None:
            self._hashes = hash_rows(self._columns, keys.num_rows)
            self._buckets = 1 << max(2 * len(rows) - 1, 1).bit_length()
            buckets = (self._hashes & np.uint64(self._buckets - 1)).astype(np.int64)
        else:
            low, high = self._range
            self._buckets = high - low + 1
            buckets = values_of(self._columns[0]).astype(np.int64) - low
        buckets = buckets[rows]
        counts = np.bincount(buckets, minlength=self._buckets)
        # One bucket more, without rows, for keys that cannot be equal to any.
        self._starts = np.zeros(self._buckets + 2, np.int64)
        np.cumsum(counts, out=self._starts[1:-1])
        self._starts[-1] = self._starts[-2]
        self._single = bool(counts.max(initial=0) <= 1)
        width: Any = np.int32 if keys.num_rows < 2**31 else np.int64
        if self._single:
            self._order = np.empty(len(rows), width)
            self._order[self._starts[buckets]] = rows
        else:
            self._order = rows[np.argsort(buckets, kind="stable")].astype(width)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        hashes = 0 if self._hashes is None else self._hashes.nbytes
        return self._starts.nbytes + self._order.nbytes + hashes

    def matches(self, keys: pa.RecordBatch) -> Iterator[Portion]:
        """Pairs of equal keys."""
        for start in range(0, max(keys.num_rows, 1), _PORTION):
            piece = keys.slice(start, _PORTION)
            for stop, positions, found in self._matches(piece):
                yield start + stop, positions + start, found

    def _matches(self, keys: pa.RecordBatch) -> Iterator[Portion]:
        columns = [canonical(column) for column in keys.columns]
        hashes = hash_rows(columns, keys.num_rows) if self._hashes is not None else None
        buckets = self._buckets_of(columns, hashes, keys.num_rows)
        firsts = self._starts[buckets]
        counts = self._starts[buckets + 1] - firsts
        for start, stop in _portions(counts):
            here = slice(start, stop)
            if self._single:
                positions = np.flatnonzero(counts[here]) + start
                found = self._order[firsts[positions]].astype(np.int64)
            else:
                positions, places = _expanded(firsts[here], counts[here])
                positions += start
                found = self._order[places].astype(np.int64)
            if hashes is not None and self._hashes is not None:
                alike = hashes[positions] == self._hashes[found]
                positions, found = positions[alike], found[alike]
                equal = self._equal(columns, positions, found)
                if not equal.all():
                    positions, found = positions[equal], found[equal]
            yield stop, positions, found

    def _usable(self, columns: Sequence[Column], rows: int) -> NDArray[np.bool_] | None:
        """Which rows have no null where null equals nothing; None: all."""
        plain = [column for column, equal in zip(columns, self._nulls_equal, strict=True) if not equal]
        present = valid(*plain)
        return None if present is None else booleans_of(present)

    def _buckets_of(
        self, columns: Sequence[Column], hashes: NDArray[np.uint64] | None, rows: int
    ) -> Positions:
        usable = self._usable(columns, rows)
        if hashes is not None:
            buckets = (hashes & np.uint64(self._buckets - 1)).astype(np.int64)
        else:
            assert self._range is not None
            low, high = self._range
            values = values_of(columns[0])
            within = (values >= low) & (values <= high)
            buckets = np.where(within, values.astype(np.int64) - low, self._buckets)
        return buckets if usable is None else np.where(usable, buckets, self._buckets)

    def _equal(self, columns: Sequence[Column], positions: Positions, found: Positions) -> NDArray[np.bool_]:
        equal = np.ones(len(positions), np.bool_)
        for mine, theirs, nulls_equal in zip(columns, self._columns, self._nulls_equal, strict=True):
            same = _same_values(mine, theirs, positions, found)
            if nulls_equal and (mine.null_count or theirs.null_count):
                here, there = _present(mine)[positions], _present(theirs)[found]
                same = (same & here & there) | ~(here | there)
            equal &= same
        return equal


def _dense_range(columns: Sequence[Column], rows: Positions, nulls_equal: bool) -> tuple[int, int] | None:
    """Lowest and highest key where that is one column of integers close to each other."""
    if len(columns) != 1 or nulls_equal or not len(rows):
        return None
    kind = columns[0].type
    if not (pa.types.is_integer(kind) or pa.types.is_temporal(kind)):
        return None
    values = values_of(columns[0])[rows]
    low, high = int(values.min()), int(values.max())
    if high >= 2**63 or high - low >= max(_SPARSEST * len(rows), _SMALL_TABLE):
        return None
    return low, high


def _portions(counts: Positions) -> Iterator[tuple[int, int]]:
    """Runs of rows with about `_PORTION` pairs together, or one row with more."""
    ends = np.cumsum(counts)
    rows = len(counts)
    start = 0
    while start < rows:
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + _PORTION, side="right")), start + 1)
        yield start, stop
        start = stop
    if not rows:
        yield 0, 0


def _expanded(firsts: Positions, counts: Positions) -> tuple[Positions, Positions]:
    """For each row as often as it counts: its position, and the places from its first on."""
    positions = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    places = np.arange(len(positions)) + np.repeat(firsts - before, counts)
    return positions, places


def _present(column: Column) -> NDArray[np.bool_]:
    present = valid(column)
    return np.ones(len(column), np.bool_) if present is None else booleans_of(present)


def _same_values(mine: Column, theirs: Column, positions: Positions, found: Positions) -> NDArray[np.bool_]:
    """Whether the values at positions are equal; anything where one is null."""
    kind = mine.type
    if pa.types.is_decimal(kind):
        left, right = decimals.words(mine)[positions], decimals.words(theirs)[found]
        return np.asarray((left == right).all(axis=1))
    if pa.types.is_floating(kind):
        bits = f"u{kind.bit_width // 8}"
        return np.asarray(values_of(mine).view(bits)[positions] == values_of(theirs).view(bits)[found])
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return np.asarray(values_of(mine)[positions] == values_of(theirs)[found])
    if pa.types.is_null(kind):
        return np.zeros(len(positions), np.bool_)
    return booleans_of(compute("equal", take(mine, positions), take(theirs, found)))
