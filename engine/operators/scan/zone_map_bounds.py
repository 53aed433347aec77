"""How far the first values of a column reach, as zone maps tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bamquery.data_types.type_groups import value_type
from bamquery.engine.operators.base.dynamic_filter import DynamicCondition
from bamquery.engine.operators.scan.chunks import Chunk
from bamquery.plan.expressions import Literal, SortKey
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.fragment import Fragment

_SPARE_VECTORS: Final = 64
"""Looked at beyond those that full ones would take: fragments end with short ones, some have nulls."""


def zone_map_bound(
    fragments: Sequence[Fragment], column: str, key: SortKey, count: int
) -> DynamicCondition | None:
    """What the first `count` of all rows fulfil, in the order of `key`, which is the column.

    Whole vectors are counted: if those whose values are all at least x have `count` values together, no
    lesser value is among the `count` greatest.
    """
    kind: Any = value_type(key.expression.type)
    if pa.types.is_decimal(kind) or not fragments:
        return None
    zones = [fragment.zone_map.column(column) for fragment in fragments]
    nulls = int(sum(zone.nulls.sum() for zone in zones))
    if key.nulls_first:
        if nulls >= count:
            return DynamicCondition(None)
        count -= nulls
    bounds = pa.chunked_array([zone.minimum if key.descending else zone.maximum for zone in zones])
    # NaN is greater than every bound: it counts among the greatest values only.
    values = np.concatenate([zone.rows - zone.nulls - (0 if key.descending else zone.nans) for zone in zones])
    if bounds.type != kind or not bounds.length():
        return None
    most = min(count, -(-count // VECTOR_ROWS) + _SPARE_VECTORS)
    order = "descending" if key.descending else "ascending"
    best = _first_bounds(bounds, most, order)
    reached = np.searchsorted(np.cumsum(values[best]), count)
    if reached >= len(best):
        return None
    bound = bounds[int(best[reached])]
    if not bound.is_valid:
        return None
    function = "greater_equal" if key.descending else "less_equal"
    return DynamicCondition(function, (Literal(bound),), or_null=key.nulls_first)


def best_first(chunks: Sequence[Chunk], column: str, *, descending: bool) -> Sequence[Chunk]:
    """The chunks with the greatest, or least, values first, where the table is about in their order.

    Elsewhere they stay as they are: each has about the same values, and the first ones are small.
    """
    bounds = [_bounds(chunk, column) for chunk in chunks]
    known = [bound for bound in bounds if bound is not None]
    if len(known) < 2:
        return chunks
    least, greatest = (pa.array([bound[side] for bound in known]) for side in (0, 1))
    if descending:
        apart = pc.greater_equal(pc.max(least), pc.min(greatest))
    else:
        apart = pc.less_equal(pc.min(greatest), pc.max(least))
    if not apart.as_py():
        return chunks
    ranked = pc.sort_indices(
        greatest if descending else least, [("", "descending" if descending else "ascending")]
    )
    places = [number for number, bound in enumerate(bounds) if bound is not None]
    first = [places[i] for i in np.asarray(ranked).tolist()]
    return [chunks[i] for i in (*first, *(i for i in range(len(chunks)) if bounds[i] is None))]


def _bounds(chunk: Chunk, column: str) -> tuple[pa.Scalar[Any], pa.Scalar[Any]] | None:
    """Least and greatest value of a chunk; None where that is not known."""
    lows, highs = [], []
    for piece in chunk.pieces:
        if len(piece.vectors):
            zones = piece.fragment.zone_map.column(column)
            zone_maps = zones.slice(int(piece.vectors[0]), int(piece.vectors[-1]) + 1)
            if zone_maps.unbounded.any():
                return None
            lows.append(pc.min(zone_maps.minimum))
            highs.append(pc.max(zone_maps.maximum))
    if not lows:
        return None
    low, high = pc.min(pa.array(lows)), pc.max(pa.array(highs))
    return (low, high) if low.is_valid and high.is_valid else None


def _first_bounds(bounds: pa.ChunkedArray[Any], most: int, order: str) -> NDArray[np.int64]:
    """Where the first of them in an order are, those that are not known left out."""
    known: Any = np.flatnonzero(bounds.is_valid())
    if not len(known):  # pyarrow 25 answers with nothing at all, and fails over it
        return np.empty(0, np.int64)
    keys: Any = [("bound", order)]
    columns: Any = {"bound": bounds.take(pa.array(known))}
    select: Any = pc.select_k_unstable  # takes tables, too
    found = select(pa.table(columns), most, keys)
    places: NDArray[np.int64] = known[np.asarray(found)]
    return places
