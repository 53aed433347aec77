"""The seam between what a fragment is made of and who writes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa


class RowSource(Protocol):
    """What a fragment is made of."""

    @property
    def rows(self) -> int:
        """Exact number of rows."""
        ...

    def column(self, index: int) -> Iterator[pa.Array[Any]]:
        """Chunks of one column in row order, of any length, together `rows` long.

        Called once per column, in any order; twice for dictionary columns, with the same values.
        """
        ...
