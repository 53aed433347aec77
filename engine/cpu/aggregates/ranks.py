"""Values at given places of each group in order: found without sorting where groups are large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.value_lists import group_codes, sort_within_groups
from bamquery.engine.cpu.kernels import Column, from_values, nulls, stored_values, take
from bamquery.engine.cpu.numeric.small_decimals import from_small, small_values
from bamquery.plan.expressions import ColumnRef, SortKey

_LARGE: Final = 256
"""Rows of a group, on average, from which a search in each one beats a sort of all."""


def values_at(
    values: Column, counts: NDArray[np.int64], ranks: Sequence[NDArray[np.int64]], *, descending: bool
) -> list[Column]:
    """For each of `ranks`, which has a place from 0 for each group, the values there, NaN the greatest.

    Args:
        values: not null, those of the first group first.
        counts: how many each group has. For one without values the result is any value, or null.
        ranks: within the groups' values.
        descending: whether places count from the greatest.
    """
    if not len(values):
        return [nulls(len(counts), values.type) for _ in ranks]
    filled = counts > 0
    if descending:
        ranks = [counts - 1 - rank for rank in ranks]
    if len(values) >= _LARGE * int(filled.sum()):
        stored = _as_numbers(values)
        if stored is not None:
            return [_column(found, values.type) for found in _select_ranks(stored, counts, ranks)]
    ordered = _sort_groups(values, counts)
    starts = np.cumsum(counts) - counts
    return [take(ordered, np.where(filled, starts + rank, 0)) for rank in ranks]


def _select_ranks(
    stored: NDArray[Any], counts: NDArray[np.int64], ranks: Sequence[NDArray[np.int64]]
) -> list[NDArray[Any]]:
    found = [np.zeros(len(counts), stored.dtype) for _ in ranks]
    ends = np.cumsum(counts)
    for group in np.flatnonzero(counts).tolist():
        places = [int(rank[group]) for rank in ranks]
        own = np.partition(stored[ends[group] - counts[group] : ends[group]], sorted(set(places)))
        for place, values in zip(places, found, strict=True):
            values[group] = own[place]
    return found


def _is_stored(kind: pa.DataType) -> bool:
    """Whether stored values are numbers in the order of SQL; numpy, too, has NaN for the greatest."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)


def _as_numbers(values: Column) -> NDArray[Any] | None:
    """Numbers in the values' order, from which `_column` makes values again."""
    if _is_stored(values.type):
        return stored_values(values)
    if pa.types.is_decimal128(values.type):
        found = small_values(values)
        return None if found is None else found[0]
    return None


def _column(stored: NDArray[Any], kind: pa.DataType) -> Column:
    return from_small(stored, kind) if pa.types.is_decimal(kind) else from_values(stored, kind)


def _sort_groups(values: Column, counts: NDArray[np.int64]) -> Column:
    """Each group's values in order."""
    codes = group_codes(counts)
    stored = _as_numbers(values)
    if stored is not None:
        return take(values, np.lexsort((stored, codes)))
    return take(values, sort_within_groups(codes, [values], [SortKey(ColumnRef(1, "", values.type))]))
