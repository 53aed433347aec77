"""Functions of a row's place in its partition, and of the rows at some distance from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pylibcudf as plc

from bamquery.engine.cuda.kernels import FLOAT64, INT64, Side
from bamquery.engine.cuda.vectors import Mask, Vector
from bamquery.engine.cuda.windows.answers import Chosen, Neighbours
from bamquery.engine.cuda.windows.partitions import Partitions
from bamquery.errors import ExecutionError


def ntile(partitions: Partitions, counts: plc.Column) -> plc.Column:
    """The partition's rows in n parts, the first of them one row larger where they cannot be equal.

    Raises:
        ExecutionError: n is below 1.
    """
    kernels = partitions.kernels
    known = Mask.from_validity(kernels, counts)
    parts = Vector(kernels, kernels.convert(counts, INT64)).fill_nulls(1)
    if (parts < 1).any():
        raise ExecutionError("ntile() needs a number above zero")
    size = partitions.end - partitions.start
    parts = parts.minimum(size)
    small, larger = size / parts, size % parts
    row = partitions.own - partitions.start
    in_larger = larger * (small + 1)
    tile = (row < in_larger).choose(row / (small + 1), larger + (row - in_larger) / small)
    return kernels.where(known.column, (tile + 1).column, kernels.null(pa.int64()))


def neighbours(
    partitions: Partitions,
    value: plc.Column,
    offsets: plc.Column,
    default: Side,
    kind: pa.DataType,
    *,
    forward: bool,
    ignore_nulls: bool,
) -> Neighbours:
    """Of lead (`forward`) or lag: the value `offset` rows away, or the default where no row is there."""
    kernels, rows = partitions.kernels, partitions.rows
    away = Vector(kernels, kernels.convert(offsets, INT64)).fill_nulls(0).clip(-rows - 1, rows + 1)
    away = away if forward else -away
    if ignore_nulls:
        places, there = _ignoring_nulls(partitions, value, away)
    else:
        places = partitions.own + away
        there = (places >= partitions.start) & (places < partitions.end)
        there = there & (places >= 0) & (places < rows)
    given = kernels.is_valid(offsets) if offsets.null_count() else None
    return Neighbours(
        kernels, Chosen(kernels, value, there.choose(places, rows)), there, default, given, kind
    )


def _ignoring_nulls(partitions: Partitions, value: plc.Column, away: Vector) -> tuple[Vector, Mask]:
    """Only rows without null count; the row itself does at distance 0."""
    known = Mask.from_validity(partitions.kernels, value)
    rows, before, own = known.places(), known.numbers().totals(), partitions.own
    # Forward, the first is the next one after this row; back, the last is the one before.
    number = (away > 0).choose(before.take(own + 1) + away - 1, before.take(own) + away)
    there = (before.take(partitions.start) <= number) & (number < before.take(partitions.end))
    places = rows.take(there.choose(number, 0)) if len(rows) else own
    here = away.equals(0)
    return here.choose(own, places), there | here


def _percent_rank(p: Partitions) -> Vector:
    others = p.end - p.start - 1
    share = (p.peer_start - p.start).cast(FLOAT64) / others.maximum(1).cast(FLOAT64)
    return (others > 0).choose(share, 0.0)


RANKINGS: Final[Mapping[str, Callable[[Partitions], Vector]]] = MappingProxyType(
    {
        "row_number": lambda p: p.own - p.start + 1,
        "rank": lambda p: p.peer_start - p.start + 1,
        "dense_rank": lambda p: p.peers - p.first_group + (1 + p.rest.groups_before),
        "percent_rank": _percent_rank,
        "cume_dist": lambda p: (p.peer_end - p.start).cast(FLOAT64) / (p.end - p.start).cast(FLOAT64),
    }
)
"""Functions without arguments."""
