"""Numbers or times at equal distances, which no table holds: range() and generate_series() in FROM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SERIES_TYPES: Final = (pa.int64(), pa.timestamp("us"))
"""Types of the values: 64 bits each."""


@dataclass(frozen=True, slots=True)
class Series:
    """A source of one column: `first`, `first + step`, … up to `rows` values.

    Attributes:
        name: of the function, and of the column.
        type: one of `SERIES_TYPES`; of times `first` and `step` are microseconds.
    """

    name: str
    first: int
    step: int
    rows: int
    type: pa.DataType

    @property
    def schema(self) -> pa.Schema:
        """The column."""
        return pa.schema([pa.field(self.name, self.type)])

    def values(self, start: int, stop: int) -> NDArray[np.int64]:
        """Those from number `start` to the one before `stop`."""
        # All of them fit into 64 bits; a product on the way may not, and wraps around and back.
        with np.errstate(over="ignore"):
            places = np.arange(start, stop, dtype=np.int64)
            return places * np.int64(self.step) + np.int64(self.first)
