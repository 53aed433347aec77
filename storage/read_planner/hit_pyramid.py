"""How the rows of a selection lie: distinct groups of 2^k rows, from which the blocks of any width follow.

Two selections of as many rows may touch a thousand times as many blocks: scattered or clustered, pruned by
the condition itself or by another one. Formulas that start from the number of rows (Cardenas 1975, Yao 1977,
both in CACM) know only rows that lie anywhere. A pyramid is counted from the selection itself, in one pass,
and answers for every width that a column may have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.format.layout import VECTOR_ROWS

LEVELS: Final = 17
"""Sizes of groups that are counted: 1, 2, 4 … 65,536 rows."""
_VECTOR_LEVEL: Final = VECTOR_ROWS.bit_length() - 1


@dataclass(frozen=True, slots=True)
class HitPyramid:
    """Distinct groups of 2^k rows that hold a row of the selection, for k below `LEVELS`.

    Groups are those of a fragment: the first begins with its row 0. Numbers are whole where they were
    counted.
    """

    groups: tuple[float, ...]
    runs: tuple[float, ...] | None = None
    """Of such groups side by side; None where nobody counted them."""

    @classmethod
    def count(cls, rows: NDArray[np.int64]) -> HitPyramid:
        """Of ascending row ids of one fragment, exactly."""
        groups, runs = _native.count_hit_pyramid(rows)
        return cls(tuple(groups[:LEVELS].tolist()), tuple(runs[:LEVELS].tolist()))

    @classmethod
    def from_counts(cls, rows: int, groups: Sequence[int]) -> HitPyramid:
        """Of what a GPU counted: rows, and groups of 2, 4, 8 … of them."""
        assert len(groups) == LEVELS - 1
        return cls((rows, *groups))

    @classmethod
    def from_vectors(cls, vectors: NDArray[np.int64], rows: int) -> HitPyramid:
        """All `rows` rows of the vectors with these ascending numbers."""
        if not len(vectors):
            return NOTHING
        above, runs = (found.tolist() for found in _native.count_hit_pyramid(vectors))
        within = [max(rows / (1 << level), len(vectors)) for level in range(_VECTOR_LEVEL)]
        return cls(
            (*within, *above[: LEVELS - _VECTOR_LEVEL]),
            (*[runs[0]] * _VECTOR_LEVEL, *runs[: LEVELS - _VECTOR_LEVEL]),
        )

    @property
    def rows(self) -> float:
        """Of the selection."""
        return self.groups[0]

    @property
    def vectors(self) -> float:
        """Distinct ones."""
        return self.groups[_VECTOR_LEVEL]

    def groups_of(self, rows: float) -> float:
        """Distinct groups of so many rows each, which need be no power of two."""
        return _interpolate_count(self.groups, rows)

    def runs_of(self, rows: float) -> float:
        """Runs of adjacent groups of so many rows each.

        Where they were not counted: of two neighbours that are both hit, every other pair lies in one group
        of twice the size. So there are 2 (D(g) - D(2 g)) such pairs, and each joins two of D(g) runs.
        """
        groups = self.groups_of(rows)
        if self.runs is not None:
            return min(_interpolate_count(self.runs, rows), groups)
        return min(max(2 * self.groups_of(2 * rows) - groups, min(groups, 1.0)), groups)

    def thin_out(self, share: float) -> HitPyramid:
        """What to expect once a condition that knows nothing of places has left that share of the rows."""
        if share >= 1 or not self.rows:
            return self
        if share <= 0:
            return NOTHING
        rows = self.rows * share
        left = [g * -math.expm1(self.rows / g * math.log1p(-share)) for g in self.groups[1:]]
        groups = (rows, *(min(max(found, min(rows, 1.0)), rows) for found in left))
        if self.runs is None:
            return HitPyramid(groups)
        # Neighbours stay neighbours where both are left.
        joined = [(g - r) * (n / g) ** 2 for g, r, n in zip(self.groups, self.runs, groups, strict=True)]
        return HitPyramid(groups, tuple(max(n - j, min(n, 1.0)) for n, j in zip(groups, joined, strict=True)))


def _interpolate_count(counts: tuple[float, ...], rows: float) -> float:
    """The logarithm of a count as it follows that of the size: a cubic through the counts around.

    Its slopes are those between the neighbours on both sides (Catmull and Rom, 1974). Beyond the last count
    it goes on as a straight line.
    """
    if not counts[0] or rows <= 1:
        return counts[0]
    size = math.log2(rows)
    level = min(int(size), LEVELS - 2)
    at = size - level
    low, high = math.log2(counts[level]), math.log2(counts[level + 1])
    if at in {0.0, 1.0}:
        return counts[level + int(at)]
    before = math.log2(counts[level - 1]) if level else 2 * low - high
    behind = math.log2(counts[level + 2]) if level + 2 < LEVELS else 2 * high - low
    if at > 1:
        return max(math.exp2(low + at * (high - low)), 1.0)
    into, out = (high - before) / 2, (behind - low) / 2
    square, cube = at * at, at * at * at
    found = low + (at - 2 * square + cube) * into + (3 * square - 2 * cube) * (high - low)
    return max(math.exp2(found + (cube - square) * out), 1.0)


NOTHING: Final = HitPyramid((0.0,) * LEVELS, (0.0,) * LEVELS)
"""Of no rows."""
