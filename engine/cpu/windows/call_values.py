"""Values of a call over a window for some rows at a time: strings of all of them may be too large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.kernels import Column, boolean_column, from_values, take_shared, where


class CallValues(Protocol):
    """The values of one call."""

    def compute_rows(self, start: int, stop: int) -> Column:
        """Those of the rows from `start` to before `stop`, of which there is one at least.

        Raises:
            LargeStringError: they take too much memory at once.
            ExecutionError: a value cannot be computed.
        """
        ...


@dataclass(frozen=True, slots=True)
class ComputedValues:
    """Values that are there."""

    column: Column

    def compute_rows(self, start: int, stop: int) -> Column:
        """Without a copy."""
        return self.column.slice(start, stop - start)


@dataclass(frozen=True, slots=True)
class RowValues:
    """For each row a value of another row, or null.

    Attributes:
        values: of all rows.
        places: which.
        there: whether there is one.
    """

    values: Column
    places: NDArray[np.int64]
    there: NDArray[np.bool_]

    def compute_rows(self, start: int, stop: int) -> Column:
        """The values at the places."""
        there = self.there[start:stop]
        places = np.where(there, self.places[start:stop], 0)
        return take_shared(self.values, from_values(places, pa.int64(), boolean_column(there)))


@dataclass(frozen=True, slots=True)
class NeighbourValues:
    """Of lead or lag: the value some rows away, or the default where no row is there.

    Attributes:
        found: those values.
        there: whether a row is there.
        default: for rows from one to before another.
        given: whether it is known how many rows away; None: for all rows.
    """

    found: CallValues
    there: NDArray[np.bool_]
    default: Callable[[int, int], Column]
    given: Column | None

    def compute_rows(self, start: int, stop: int) -> Column:
        """See `CallValues`."""
        found = self.found.compute_rows(start, stop)
        result = where(boolean_column(self.there[start:stop]), found, self.default(start, stop))
        if self.given is None:
            return result
        return where(self.given.slice(start, stop - start), result, pa.scalar(None, found.type))


@dataclass(frozen=True, slots=True)
class FrameValues:
    """For each row the value of its frame, which neighbours may share.

    Attributes:
        numbers: each row's frame, ascending.
        values: of frames from one number to before another.
    """

    numbers: NDArray[np.int64]
    values: Callable[[int, int], Column]

    def compute_rows(self, start: int, stop: int) -> Column:
        """Those of the rows' frames."""
        own = self.numbers[start:stop]
        first = int(own[0])
        return take_shared(self.values(first, int(own[-1]) + 1), own - first if first else own)
