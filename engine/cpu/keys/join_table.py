"""Rows found by their keys: a table of buckets over numpy arrays, probed for many rows at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.kernels import Column, boolean_values, compute, stored_values, take, valid_rows
from bamquery.engine.cpu.keys.grouping import canonical
from bamquery.engine.cpu.keys.hashing import Hashes, hash_rows
from bamquery.engine.cpu.keys.key_codes import KeyCodes
from bamquery.engine.cpu.keys.stable_order import stable_order
from bamquery.engine.cpu.numeric import decimals
from bamquery.engine.cpu.stored_frame import StoredFrame, whole_batch
from bamquery.engine.device import HostPositions

Portion = tuple[int, HostPositions, HostPositions]

_PORTION: Final = 1 << 18
"""Pairs, and rows to look up, that are dealt with at once."""
_SPARSEST: Final = 16
"""Buckets for each row up to which a bucket for every code is worth it."""
_SMALL_TABLE: Final = 1 << 16
_INT32_ROWS: Final = 1 << 31
"""Rows whose places, and their number, do not fit in 32 bits."""
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)


class CpuJoinTable:
    """See `bamquery.engine.device.JoinTable`.

    A row's bucket is the code of its keys where these are whole numbers close to each other: then all rows
    of a bucket are equal, and often there is one at most. Else it is a part of the hash of all keys, and
    pairs are compared: by their codes if there are some, by hash and values if not.
    """

    def __init__(self, keys: pa.RecordBatch, nulls_equal: Sequence[bool]) -> None:
        self._nulls_equal = tuple(nulls_equal)
        self._columns = [canonical(column) for column in keys.columns]
        count = keys.num_rows
        usable = self._usable(self._columns)
        chosen = None if usable is None else np.flatnonzero(usable)
        rows = np.arange(count) if chosen is None else chosen
        self._codes = KeyCodes.from_rows(self._columns, chosen, nulls_equal) if len(rows) else None
        self._dense = self._codes is not None and self._codes.codes < max(_SPARSEST * len(rows), _SMALL_TABLE)
        self._hashes: Hashes | None = None
        if self._dense:
            assert self._codes is not None
            self._buckets = self._codes.codes
            buckets = self._codes.encode(self._columns)
        else:
            self._hashes = self._number_keys(self._columns, count)
            self._buckets = 1 << max(2 * len(rows) - 1, 1).bit_length()
            buckets = self._bucket_of_hash(self._hashes)
        if chosen is not None:
            buckets = buckets[chosen]
        width: Any = np.int32 if count < _INT32_ROWS else np.int64
        # One bucket more, without rows, for keys that cannot be equal to any.
        self._only = np.full(self._buckets + 1, -1, width)
        self._only[buckets] = rows
        self._starts: HostPositions | None = None
        self._order = self._only[:0]
        if not (self._only[buckets] == rows).all():
            counts = np.bincount(buckets, minlength=self._buckets)
            self._starts = np.zeros(self._buckets + 2, width)
            np.cumsum(counts, out=self._starts[1:-1])
            self._starts[-1] = self._starts[-2]
            self._order = rows[stable_order(buckets, self._buckets)].astype(width)
            self._only = self._order[:0]

    @property
    def nbytes(self) -> int:
        """Memory held."""
        arrays = (self._starts, self._order, self._only, self._hashes)
        return sum(array.nbytes for array in arrays if array is not None)

    def matches(self, keys: pa.RecordBatch | StoredFrame) -> Iterator[Portion]:
        """Pairs of equal keys."""
        keys = whole_batch(keys)
        for start in range(0, max(keys.num_rows, 1), _PORTION):
            piece = keys.slice(start, _PORTION)
            for stop, positions, found in self._matches(piece):
                yield start + stop, positions + start if start else positions, found

    def _matches(self, keys: pa.RecordBatch) -> Iterator[Portion]:
        columns = [canonical(column) for column in keys.columns]
        hashes: Hashes | None = None
        if self._dense:
            assert self._codes is not None
            buckets = self._codes.encode(columns)
        else:
            hashes = self._number_keys(columns, keys.num_rows)
            buckets = self._bucket_of_hash(hashes)
            usable = self._usable(columns)
            if usable is not None:
                buckets = np.where(usable, buckets, self._buckets)
        if self._starts is None:
            found = self._only[buckets]
            positions = np.flatnonzero(found >= 0)
            if len(positions) < len(found):
                found = found[positions]
            found = found.astype(np.int64)
            yield keys.num_rows, *self._pairs_with_equal_keys(columns, hashes, positions, found)
            return
        firsts = self._starts[buckets].astype(np.int64)
        counts = self._starts[buckets + 1] - firsts
        for start, stop in _portions(counts):
            positions, places = _expand(firsts[start:stop], counts[start:stop])
            positions += start
            found = self._order[places].astype(np.int64)
            yield stop, *self._pairs_with_equal_keys(columns, hashes, positions, found)

    def _pairs_with_equal_keys(
        self, columns: Sequence[Column], hashes: Hashes | None, positions: HostPositions, found: HostPositions
    ) -> tuple[HostPositions, HostPositions]:
        """Those of the pairs of a bucket that have equal keys."""
        if self._dense:
            return positions, found
        assert hashes is not None
        assert self._hashes is not None
        alike = hashes[positions] == self._hashes[found]
        positions, found = positions[alike], found[alike]
        if self._codes is None:
            equal = self._equal(columns, positions, found)
            if not equal.all():
                positions, found = positions[equal], found[equal]
        return positions, found

    def _number_keys(self, columns: Sequence[Column], rows: int) -> Hashes:
        """A number for each row's keys: different ones for different keys, where there are codes."""
        if self._codes is not None:
            return self._codes.encode(columns).view(np.uint64)
        return hash_rows(columns, rows)

    def _bucket_of_hash(self, hashes: Hashes) -> HostPositions:
        if self._codes is None:
            return (hashes & np.uint64(self._buckets - 1)).astype(np.int64)
        # Codes are no hashes; the highest bits of their product with an odd number are.
        shift = np.uint64(64 - (self._buckets - 1).bit_length())
        return ((hashes * _GOLDEN) >> shift).astype(np.int64)

    def _usable(self, columns: Sequence[Column]) -> NDArray[np.bool_] | None:
        """Which rows have no null where null equals nothing; None: all."""
        plain = [column for column, equal in zip(columns, self._nulls_equal, strict=True) if not equal]
        present = valid_rows(*plain)
        return None if present is None else boolean_values(present)

    def _equal(
        self, columns: Sequence[Column], positions: HostPositions, found: HostPositions
    ) -> NDArray[np.bool_]:
        equal = np.ones(len(positions), np.bool_)
        for mine, theirs, nulls_equal in zip(columns, self._columns, self._nulls_equal, strict=True):
            same = _same_values(mine, theirs, positions, found)
            if nulls_equal and (mine.null_count or theirs.null_count):
                here, there = _present(mine)[positions], _present(theirs)[found]
                same = (same & here & there) | ~(here | there)
            equal &= same
        return equal


def _portions(counts: HostPositions) -> Iterator[tuple[int, int]]:
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


def _expand(firsts: HostPositions, counts: HostPositions) -> tuple[HostPositions, HostPositions]:
    """For each row as often as it counts: its position, and the places from its first on."""
    positions = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    places = np.arange(len(positions)) + np.repeat(firsts - before, counts)
    return positions, places


def _present(column: Column) -> NDArray[np.bool_]:
    present = valid_rows(column)
    return np.ones(len(column), np.bool_) if present is None else boolean_values(present)


def _same_values(
    mine: Column, theirs: Column, positions: HostPositions, found: HostPositions
) -> NDArray[np.bool_]:
    """Whether the values at positions are equal; anything where one is null."""
    kind = mine.type
    if pa.types.is_decimal(kind):
        left, right = decimals.decimal_words(mine)[positions], decimals.decimal_words(theirs)[found]
        return np.asarray((left == right).all(axis=1))
    if pa.types.is_floating(kind):
        bits = f"u{kind.bit_width // 8}"
        return np.asarray(
            stored_values(mine).view(bits)[positions] == stored_values(theirs).view(bits)[found]
        )
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        return np.asarray(stored_values(mine)[positions] == stored_values(theirs)[found])
    if pa.types.is_null(kind):
        return np.zeros(len(positions), np.bool_)
    return boolean_values(compute("equal", take(mine, positions), take(theirs, found)))
