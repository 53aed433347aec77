"""Stable order by several keys: nulls first or last by key, NaN the greatest number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pylibcudf as plc
from pylibcudf.types import NullOrder, Order, TypeId

from bamquery.engine.cuda.cache.late_columns import take_rows
from bamquery.engine.cuda.expressions.evaluation import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame, make_frame
from bamquery.engine.cuda.kernels import INT64, Kernels
from bamquery.plan.nodes import SortKey

_FLOATS: Final = (TypeId.FLOAT32, TypeId.FLOAT64)


def sort_frame(kernels: Kernels, frame: CudaFrame, keys: Sequence[SortKey], limit: int | None) -> CudaFrame:
    """The rows, or the first `limit` of them, in order.

    Raises:
        ExecutionError: a key cannot be computed.
    """
    rows = frame.rows if limit is None else min(limit, frame.rows)
    if not keys or frame.rows < 2:
        return kernels.slice_frame(frame, 0, rows)
    columns = evaluate_columns(kernels, [key.expression for key in keys], frame)
    orders = [Order.DESCENDING if key.descending else Order.ASCENDING for key in keys]
    nulls = [null_order(key) for key in keys]
    positions = plc.sorting.stable_sorted_order(
        plc.Table(columns), orders, nulls, stream=kernels.stream, mr=kernels.memory
    )
    if len(columns) == 1 and orders[0] == Order.DESCENDING and columns[0].type().id() in _FLOATS:
        positions = _with_nans_in_order(kernels, positions, columns[0])
    if not frame.held:
        return make_frame((), rows)
    return make_frame(take_rows(kernels, frame.held, kernels.slice_column(positions, 0, rows)), rows)


def _with_nans_in_order(kernels: Kernels, positions: plc.Column, keys: plc.Column) -> plc.Column:
    """The order with what is not a number, which comes first, in the order of the rows.

    libcudf 26.10 sorts one column of floats without nulls by radix, with a NaN's position before its value,
    and turns that round where the order is descending.
    """
    if keys.null_count():
        return positions
    nan = kernels.convert(kernels.is_nan(keys), INT64)
    count = kernels.reduce(nan, plc.aggregation.sum(), INT64).to_py(stream=kernels.stream)
    assert isinstance(count, int)
    if count < 2:
        return positions
    rows = positions.size()
    first = plc.Table([kernels.slice_column(positions, 0, count)])
    ordered = plc.sorting.sort(
        first, [Order.ASCENDING], [NullOrder.AFTER], stream=kernels.stream, mr=kernels.memory
    )
    return kernels.concatenate([*ordered.columns(), kernels.slice_column(positions, count, rows)])


def null_order(key: SortKey) -> NullOrder:
    """Where libcudf puts nulls among values, which descending order turns round."""
    return NullOrder.BEFORE if key.nulls_first != key.descending else NullOrder.AFTER
