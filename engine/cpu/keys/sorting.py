"""Stable order by several keys: nulls first or last by key, NaN the greatest number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bamquery.data_types.type_groups import INTERVAL
from bamquery.engine.cpu.expressions.evaluation import evaluate_columns
from bamquery.engine.cpu.frames import decode_dictionary, take_batch
from bamquery.engine.cpu.kernels import Column, Constant, any_true, compute, sorted_places, take
from bamquery.engine.cpu.temporal.interval_columns import order_key
from bamquery.plan.nodes import SortKey

_FEW = 4
"""Rows for each wanted one from which finding the wanted ones first is quicker than sorting all."""


def sort_batch(batch: pa.RecordBatch, keys: Sequence[SortKey], limit: int | None) -> pa.RecordBatch:
    """The rows, or the first `limit` of them, in order.

    Raises:
        ExecutionError: a key cannot be computed.
    """
    if keys and batch.num_rows > 1:
        batch = take_batch(batch, sorted_positions(batch, keys, limit))
    return batch if limit is None else batch.slice(0, limit)


def sorted_positions(batch: pa.RecordBatch, keys: Sequence[SortKey], limit: int | None) -> Column:
    """Positions of the rows in order; at most `limit` of them."""
    columns: list[Column] = []
    directions: list[str] = []
    for key, column in zip(keys, evaluate_columns([k.expression for k in keys], batch), strict=True):
        for sortable, descending in _sortable(decode_dictionary(column), key):
            columns.append(sortable)
            directions.append("descending" if descending else "ascending")
    contenders = None
    if limit is not None and 0 < limit * _FEW < batch.num_rows:
        contenders = _contenders(columns[0], directions[0], limit)
    if contenders is not None:
        columns = [take(column, contenders) for column in columns]
    positions = sorted_places(columns, directions)
    if limit is not None:
        positions = positions.slice(0, limit)
    return positions if contenders is None else take(contenders, positions)


def _contenders(column: Column, direction: str, limit: int) -> Column | None:
    """Positions, in order, of rows that may be among the first `limit`; None if that is not easily told."""
    order: Any = [("", direction)]
    best: Column = pc.select_k_unstable(column, limit, order)
    worst = column[best[-1].as_py()]
    if not worst.is_valid or _is_nan(worst):
        return None  # comparisons would lose the nulls and NaNs that tie with it
    ahead = compute("less_equal" if direction == "ascending" else "greater_equal", column, worst)
    return compute("indices_nonzero", ahead)


def _is_nan(value: Constant) -> bool:
    return bool(pa.types.is_floating(value.type) and math.isnan(value.as_py()))


def _sortable(column: Column, key: SortKey) -> list[tuple[Column, bool]]:
    """The key as columns that Arrow sorts rightly, with whether each descends.

    Arrow puts nulls, and NaNs before them, last in either direction; flags in front say otherwise.
    """
    column = column if column.type != INTERVAL else order_key(column)
    sortables: list[tuple[Column, bool]] = []
    if column.null_count and key.nulls_first:
        sortables.append((compute("is_valid", column), False))
    if pa.types.is_floating(column.type) and key.descending:
        not_a_number = compute("is_nan", column)
        if any_true(not_a_number):
            sortables.append((not_a_number, True))
    return [*sortables, (column, key.descending)]
