"""Functions of a row's place in its partition, and of the rows at some distance from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from bamquery.engine.windows.partitions import Partitions
from bamquery.engine.windows.rows import A, C, WindowRows
from bamquery.engine.windows.vectors import Mask, V
from bamquery.errors import ExecutionError
from bamquery.plan.windows import WindowCall


def ntile(rows: WindowRows[V, C, A], partitions: Partitions[V], counts: C) -> A:
    """The partition's rows in n parts, the first of them one row larger where they cannot be equal.

    Raises:
        ExecutionError: n is below 1.
    """
    tiles = rows.numbers(counts, 1)
    if (tiles < 1).any():
        raise ExecutionError("ntile() needs a number above zero")
    size = partitions.end - partitions.start
    tiles = tiles.minimum(size)
    small, larger = size // tiles, size % tiles
    row = partitions.own - partitions.start
    in_larger = larger * (small + 1)
    tile = (row < in_larger).choose(row // (small + 1), larger + (row - in_larger) // small)
    return rows.to_values(tile + 1, pa.int64(), rows.valid(counts) if rows.has_nulls(counts) else None)


def neighbours(rows: WindowRows[V, C, A], partitions: Partitions[V], window: WindowCall) -> A:
    """Of lead or lag: the value `offset` rows away, or the default where no row is there.

    Raises:
        ExecutionError: an argument cannot be computed.
    """
    value, offsets = rows.evaluate(window.call.arguments[:2])
    count, own = partitions.rows, partitions.own
    away = rows.numbers(offsets, 0).clip(-count, count)
    away = away if window.call.function == "lead" else -away
    if window.ignore_nulls:
        places, there = _ignoring_nulls(partitions, rows.valid(value), away)
    else:
        places = own + away
        there = (places >= partitions.start) & (places < partitions.end)
        there = there & (places >= 0) & (places < count)
    return rows.neighbours(window.call, rows.values_at(value, places, there), there, offsets)


def _ignoring_nulls(partitions: Partitions[V], known: Mask[V], away: V) -> tuple[V, Mask[V]]:
    """Only rows without null count; the row itself does at distance 0."""
    places, before, own = known.places(), known.totals(), partitions.own
    # Forward, the first is the next one after this row; back, the last is the one before.
    number = (away > 0).choose(before.take(own + 1) + away - 1, before.take(own) + away)
    there = (before.take(partitions.start) <= number) & (number < before.take(partitions.end))
    found = places.take(there.choose(number, 0)) if len(places) else own
    here = away.equals(0)
    return here.choose(own, found), there | here


def _percent_rank(p: Partitions[V]) -> V:
    return (p.peer_start - p.start).ratio((p.end - p.start - 1).maximum(1))


RANKINGS: Final[Mapping[str, Callable[[Partitions[Any]], Any]]] = MappingProxyType(
    {
        "row_number": lambda p: p.own - p.start + 1,
        "rank": lambda p: p.peer_start - p.start + 1,
        "dense_rank": lambda p: p.peers - p.first_group + (1 + p.rest.groups_before),
        "percent_rank": _percent_rank,
        "cume_dist": lambda p: (p.peer_end - p.start).ratio(p.end - p.start),
    }
)
"""Functions without arguments: from partitions to each row's number."""
