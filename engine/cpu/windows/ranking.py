"""Functions of a row's place in its partition, and of the rows at some distance from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.kernels import (
    Column,
    boolean_column,
    boolean_values,
    compute,
    from_values,
    stored_values,
    valid_rows,
    where,
)
from bamquery.engine.cpu.windows.call_values import RowValues
from bamquery.engine.cpu.windows.partitions import Partitions, Positions
from bamquery.errors import ExecutionError


def ntile(partitions: Partitions, counts: Column) -> Column:
    """The partition's rows in n parts, the first of them one row larger where they cannot be equal.

    Raises:
        ExecutionError: n is below 1.
    """
    known = valid_rows(counts)
    parts = stored_values(counts)
    given = np.ones(len(counts), np.bool_) if known is None else boolean_values(known)
    if (given & (parts < 1)).any():
        raise ExecutionError("ntile() needs a number above zero")
    size = partitions.end - partitions.start
    parts = np.where(given, np.minimum(parts, size), 1)
    small, larger = size // parts, size % parts
    row = np.arange(partitions.rows) - partitions.start
    in_larger = larger * (small + 1)
    tile = np.where(row < in_larger, row // (small + 1), larger + (row - in_larger) // np.maximum(small, 1))
    return from_values(tile + 1, pa.int64(), known)


@dataclass(frozen=True, slots=True)
class NeighbourValues:
    """Of lead or lag: the value some rows away, or the default where no row is there.

    Attributes:
        found: those values.
        default: for rows from one to before another.
        given: whether it is known how many rows away; None: for all rows.
    """

    found: RowValues
    default: Callable[[int, int], Column]
    given: Column | None

    def compute_rows(self, start: int, stop: int) -> Column:
        """See `Answers`."""
        found = self.found.compute_rows(start, stop)
        result = where(boolean_column(self.found.there[start:stop]), found, self.default(start, stop))
        if self.given is None:
            return result
        return where(self.given.slice(start, stop - start), result, pa.scalar(None, found.type))


def neighbours(
    partitions: Partitions,
    value: Column,
    offsets: Column,
    default: Callable[[int, int], Column],
    *,
    forward: bool,
    ignore_nulls: bool,
) -> NeighbourValues:
    """Of lead (`forward`) or lag."""
    rows = partitions.rows
    away = np.clip(stored_values(offsets), -rows - 1, rows + 1)
    away = away if forward else -away
    places, there = (_ignoring_nulls if ignore_nulls else _respecting_nulls)(partitions, value, away)
    return NeighbourValues(RowValues(value, places, there), default, valid_rows(offsets))


def _respecting_nulls(
    partitions: Partitions, value: Column, away: Positions
) -> tuple[Positions, NDArray[np.bool_]]:
    places = np.arange(partitions.rows) + away
    there = (partitions.start <= places) & (places < partitions.end)
    return places, there & (places >= 0) & (places < partitions.rows)


def _ignoring_nulls(
    partitions: Partitions, value: Column, away: Positions
) -> tuple[Positions, NDArray[np.bool_]]:
    """Only rows without null count; the row itself does at distance 0."""
    known = boolean_values(compute("is_valid", value))
    rows = np.flatnonzero(known)
    before = np.concatenate([[0], np.cumsum(known)])
    own = np.arange(partitions.rows)
    # Forward, the first is the next one after this row; back, the last is the one before.
    number = np.where(away > 0, before[own + 1] + away - 1, before[own] + away)
    there = (before[partitions.start] <= number) & (number < before[partitions.end])
    places = rows[np.where(there, number, 0)] if len(rows) else np.zeros(partitions.rows, np.int64)
    return np.where(away == 0, own, places), there | (away == 0)


def _row_number(p: Partitions) -> NDArray[Any]:
    return np.arange(p.rows) - p.start + 1


def _rank(p: Partitions) -> NDArray[Any]:
    return p.peer_start - p.start + 1


def _dense_rank(p: Partitions) -> NDArray[Any]:
    return p.peers - p.first_group + 1 + p.rest.groups_before


def _percent_rank(p: Partitions) -> NDArray[Any]:
    others = p.end - p.start - 1
    return np.where(others > 0, (p.peer_start - p.start) / np.maximum(others, 1), 0.0)


def _cume_dist(p: Partitions) -> NDArray[Any]:
    share: NDArray[Any] = (p.peer_end - p.start) / (p.end - p.start)
    return share


RANKINGS: Final[Mapping[str, Callable[[Partitions], NDArray[Any]]]] = MappingProxyType(
    {
        "row_number": _row_number,
        "rank": _rank,
        "dense_rank": _dense_rank,
        "percent_rank": _percent_rank,
        "cume_dist": _cume_dist,
    }
)
"""Functions without arguments."""
