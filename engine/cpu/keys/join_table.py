"""Rows found by their keys: a table in C++, probed for many rows at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native as native
from bamquery.engine.cpu.kernels import Column, boolean_values, compute, stored_values, take, valid_rows
from bamquery.engine.cpu.keys.hashing import hash_rows
from bamquery.engine.cpu.keys.key_words import KeyWords, canonical, key_words
from bamquery.engine.cpu.numeric import decimals
from bamquery.engine.cpu.stored_frame import StoredFrame, whole_batch
from bamquery.engine.device import HostPositions
from bamquery.statement_context.cancellation import interruptible
from bamquery.storage.format.storable_types import is_counted

Portion = tuple[int, HostPositions, HostPositions]

_PORTION: Final = 1 << 18
"""Pairs that are dealt with at once."""
_MOST_ROWS: Final = 1 << 21
"""Rows that are looked up at once, where few have partners."""
_LONG: Final = 1 << 22
"""Rows from which on a call is made so that Ctrl-C need not wait for its end."""
_SPARSEST: Final = 128
"""Codes for each row up to which C++ has a bit for every one."""


class CpuJoinTable:
    """See `bamquery.engine.device.JoinTable`.

    Rows are found by their keys where these are whole numbers that make one of 64 bits together. Others are
    found by the hash of all keys, and pairs are compared.
    """

    def __init__(self, keys: pa.RecordBatch, nulls_equal: Sequence[bool], *, owned: bool = False) -> None:
        """`owned`: the keys own their memory, and Ctrl-C need not wait until many are in the table."""
        self._nulls_equal = tuple(nulls_equal)
        self._columns: list[Column] | None = None
        columns = [canonical(column) for column in keys.columns]
        words = _all_words(columns)
        table = None
        if words is not None and owned and keys.num_rows >= _LONG:
            table = interruptible(native.key_table, words, self._nulls_equal)
        elif words is not None:
            table = native.key_table(words, self._nulls_equal)
        if table is None:
            self._columns = columns
            table = native.key_table([self._hash_words(columns, keys.num_rows)], [False])
            assert table is not None, "64 bits have codes"
        self._table: Final = table

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self._table.nbytes

    def matches(self, keys: pa.RecordBatch | StoredFrame) -> Iterator[Portion]:
        """Pairs of equal keys."""
        keys = whole_batch(keys)
        rows = keys.num_rows
        columns = [canonical(column) for column in keys.columns]
        words = _all_words(columns) if self._columns is None else [self._hash_words(columns, rows)]
        assert words is not None, "keys of both sides have one type"
        for start in range(0, max(rows, 1), _MOST_ROWS):
            stop, end = start, min(start + _MOST_ROWS, rows)
            while stop < end or not rows:
                stop, positions, found = self._find_pairs(words, stop, end - stop)
                if self._columns is not None:
                    equal = self._equal(columns, self._columns, positions, found)
                    if not equal.all():
                        positions, found = positions[equal], found[equal]
                yield stop, positions, found
                if not rows:
                    return

    def contained(self, keys: pa.RecordBatch | StoredFrame) -> NDArray[np.bool_] | None:
        """Whether each row's keys are some of the table's; None where that takes comparing pairs."""
        if self._columns is not None or not keys.num_rows:
            return None
        words = _all_words([canonical(column) for column in whole_batch(keys).columns])
        assert words is not None, "keys of both sides have one type"
        if keys.num_rows >= _LONG:
            return interruptible(self._table.mark, words).view(np.bool_)
        return self._table.mark(words).view(np.bool_)

    def _find_pairs(self, words: Sequence[KeyWords], start: int, rows: int) -> Portion:
        """A portion of the pairs of keys that are numbers, or of equal hashes."""
        return self._table.find_pairs(words, start, rows, _PORTION)

    def _hash_words(self, columns: Sequence[Column], rows: int) -> KeyWords:
        """The hash of each row's keys; null where a key is null that equals nothing."""
        plain = [column for column, equal in zip(columns, self._nulls_equal, strict=True) if not equal]
        present = valid_rows(*plain)
        hashes = hash_rows(columns, rows)
        return (hashes, None, 0) if present is None else (hashes, present.buffers()[1], present.offset)

    def _equal(
        self,
        columns: Sequence[Column],
        held: Sequence[Column],
        positions: HostPositions,
        found: HostPositions,
    ) -> NDArray[np.bool_]:
        equal = np.ones(len(positions), np.bool_)
        for mine, theirs, nulls_equal in zip(columns, held, self._nulls_equal, strict=True):
            same = _same_values(mine, theirs, positions, found)
            if nulls_equal and (mine.null_count or theirs.null_count):
                here, there = _present(mine)[positions], _present(theirs)[found]
                same = (same & here & there) | ~(here | there)
            equal &= same
        return equal


def are_dense_keys(keys: Sequence[pa.RecordBatch]) -> bool:
    """Whether a table of all these rows has a bit for each key that could be, and not hashes."""
    codes = 1
    for columns in zip(*(batch.columns for batch in keys), strict=True):
        if not is_counted(columns[0].type):
            return False
        words = [key_words(column) for column in columns]
        _, bounds, _ = native.summarize_numbers([one for one in words if one is not None], False)
        if len(bounds):
            codes *= int(bounds[1]) - int(bounds[0]) + 2
    return codes <= _SPARSEST * sum(batch.num_rows for batch in keys)


def _all_words(columns: Sequence[Column]) -> list[KeyWords] | None:
    """Of each column; None where one has none."""
    words = [key_words(column) for column in columns]
    return None if any(one is None for one in words) else [one for one in words if one is not None]


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
