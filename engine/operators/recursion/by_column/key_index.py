"""Rows of one side of a join in the order of their keys, in which a step's keys are looked up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.operators.recursion.by_column.code_table import CodeTable
from bamquery.engine.operators.recursion.by_column.key_numbers import KeyNumbers
from bamquery.engine.operators.recursion.by_column.runs import run_sizes, run_starts, stable_order
from bamquery.engine.operators.recursion.by_column.values import Columns

Places: TypeAlias = NDArray[np.int64]


class Matches(NamedTuple):
    """Pairs of probed rows and rows of the index, by their places; the probed ones ascend.

    Attributes:
        probed: of each pair; None: of each row there is one pair, in order.
        found: of each pair, where `KeyIndex.order` has it; -1: there is none.
    """

    probed: Places | None
    found: Places


class KeyIndex:
    """Rows by their keys.

    Attributes:
        order: places of the rows in the order of their keys; without those whose key equals none. None: as
            they are.
        is_unique: no key is of two rows.
    """

    def __init__(
        self, keys: Columns, kinds: Sequence[pa.DataType], nulls_equal: Sequence[bool], rows: int
    ) -> None:
        """`keys`: of so many rows; `nulls_equal`: of which keys null equals null.

        Raises:
            LeftToDeviceError: keys have too many values.
        """
        self._numbers = KeyNumbers(keys, kinds, nulls_equal)
        codes, known = self._numbers.codes(keys, rows)
        self.order: Places | None = None
        if known is not None and not known.all():
            self.order = known.nonzero()[0]
            codes = codes[self.order]
        order = stable_order(codes)
        if order is not None:
            codes = codes[order]
            self.order = order if self.order is None else self.order[order]
        starts = run_starts(codes)
        self.is_unique = len(starts) == len(codes)
        self._table = CodeTable(self._numbers.span)
        self._table.add(codes[starts])
        # Number 0 is that of keys that are not there.
        self._starts = np.concatenate([np.zeros(1, np.int64), starts])
        self._counts = np.concatenate([np.zeros(1, np.int64), run_sizes(starts, len(codes))])

    @property
    def nbytes(self) -> int:
        """Memory held, about."""
        order = 0 if self.order is None else self.order.nbytes
        return order + self._table.nbytes + self._starts.nbytes + self._counts.nbytes

    def has_match(self, keys: Columns, rows: int) -> NDArray[np.bool_]:
        """Which of so many rows have a key that is there."""
        return self._groups(keys, rows) > 0

    def find(self, keys: Columns, rows: int, reserve: Callable[[int], None], *, unmatched: bool) -> Matches:
        """The pairs of so many rows with those of equal keys.

        `reserve` is told of how many there will be. `unmatched`: a row without a partner is in a pair, too.

        Raises:
            LeftToDeviceError: what `reserve` raises.
        """
        groups = self._groups(keys, rows)
        if self.is_unique:
            found = groups.astype(np.int64) - 1
            if unmatched:
                return Matches(None, found)
            probed = groups.nonzero()[0]
            return Matches(None, found) if len(probed) == rows else Matches(probed, found[probed])
        counts, starts = self._counts[groups], self._starts[groups]
        if unmatched:
            none = groups == 0
            counts[none] = 1
            starts[none] = -1
        ends = counts.cumsum()
        pairs = int(ends[-1])
        reserve(pairs)
        probed = np.repeat(np.arange(rows), counts)
        return Matches(probed, (starts - ends + counts)[probed] + np.arange(pairs))

    def _groups(self, keys: Columns, rows: int) -> NDArray[np.int32]:
        """The number of each row's key among those that are there, from 1 on; 0: it is not there."""
        codes, known = self._numbers.codes(keys, rows)
        if known is None:
            return self._table.places(codes)
        return self._table.places(np.where(known, codes, 0)) * known
