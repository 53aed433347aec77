"""How far columns have come: rows that go beyond in one (a depth, a day, a sum) are new."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from bamquery.engine.operators.recursion.by_column.values import LIMITS, Columns


class Reach:
    """The bounds of all values so far, of those columns that know theirs."""

    def __init__(self, kinds: Sequence[pa.DataType]) -> None:
        self._bounded = [place for place, kind in enumerate(kinds) if kind in LIMITS]
        self._bounds: list[tuple[int, int]] | None = None

    def extend(self, columns: Columns) -> bool:
        """Take in more rows; whether their bounds tell that none of them was there before."""
        given = [(columns[place].low, columns[place].high) for place in self._bounded]
        before, self._bounds = self._bounds, given
        if before is None:
            return True
        self._bounds = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(before, given, strict=True)]
        return any(
            (low > most or high < least) and columns[place].valid is None
            for place, (low, high), (least, most) in zip(self._bounded, given, before, strict=True)
        )
