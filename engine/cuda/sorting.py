"""Stable order by several keys: nulls first or last by key, NaN the greatest number."""

from __future__ import annotations

from collections.abc import Sequence

import pylibcudf as plc
from pylibcudf.types import NullOrder, Order

from bamquery.engine.cuda.expressions import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame, make_frame
from bamquery.engine.cuda.kernels import Kernels
from bamquery.plan.nodes import SortKey


def sort_frame(kernels: Kernels, frame: CudaFrame, keys: Sequence[SortKey], limit: int | None) -> CudaFrame:
    """The rows, or the first `limit` of them, in order.

    Raises:
        ExecutionError: a key cannot be computed.
    """
    rows = frame.rows if limit is None else min(limit, frame.rows)
    if not keys or frame.rows < 2:
        return make_frame([kernels.cut(column, 0, rows) for column in frame.columns], rows)
    columns = evaluate_columns(kernels, [key.expression for key in keys], frame)
    orders = [Order.DESCENDING if key.descending else Order.ASCENDING for key in keys]
    nulls = [_null_order(key) for key in keys]
    positions = plc.sorting.stable_sorted_order(
        plc.Table(columns), orders, nulls, stream=kernels.stream, mr=kernels.memory
    )
    if not frame.columns:
        return make_frame((), rows)
    return make_frame(kernels.gather(frame.columns, kernels.cut(positions, 0, rows)), rows)


def _null_order(key: SortKey) -> NullOrder:
    """Where libcudf puts nulls among values, which descending order turns round."""
    return NullOrder.BEFORE if key.nulls_first != key.descending else NullOrder.AFTER
