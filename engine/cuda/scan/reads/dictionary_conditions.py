"""Conditions on a dictionary column alone: each of its values is asked once, and rows look up the answer."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from bamquery.engine.cuda.frames import CudaPositions, make_frame
from bamquery.engine.cuda.scan.columns import libcudf_rows
from bamquery.engine.cuda.scan.columns.device_columns import PlacesColumn
from bamquery.engine.cuda.scan.scan_state import ScanState
from bamquery.engine.operators.scan.filter_order import FilterStep
from bamquery.plan.expressions import Call, ColumnRef, walk
from bamquery.plan.interning import DIFFERENT_EACH_TIME

_PASSES: Final = ColumnRef(0, "passes", pa.bool_())
_PASSES_OR_NULL: Final = Call("or", (Call("is_null", (_PASSES,), pa.bool_()), _PASSES), pa.bool_())


def asks_values(step: FilterStep, column: PlacesColumn) -> bool:
    """Whether values tell which rows pass the step, of which `column` is the only one, and are fewer.

    Values of dictionaries that stay joined are asked wherever their columns are. Where some value makes the
    condition an error, rows with that value may be none.
    """
    return (
        not step.can_fail
        and column.values is not None
        and not column.stays
        and column.value_count < column.rows
        and not any(isinstance(e, Call) and e.function in DIFFERENT_EACH_TIME for e in walk(step.predicate))
    )


def matching_rows(state: ScanState, step: FilterStep, column: PlacesColumn) -> CudaPositions:
    """The rows that pass, where `asks_values` says so; the board was copied back after places were made."""
    session, device, size = state.session, state.device, column.value_count
    assert column.values is not None
    assert column.value_kind is not None
    null = libcudf_rows.null_column(session, column.value_kind, 1)
    every = libcudf_rows.concatenate(session, [column.values, null])
    found = device.matching_positions(step.predicate, make_frame([every], size + 1))
    passing = device.read_positions(found)
    truths = np.zeros(size, np.bool_)
    truths[passing[passing < size]] = True
    uploaded: Any = pa.array(truths)
    answers = libcudf_rows.upload_values(session, uploaded)
    of_rows = libcudf_rows.look_up(session, answers, column.data, column.rows)
    condition = _PASSES_OR_NULL if size in passing else _PASSES
    rows = device.matching_positions(condition, make_frame([of_rows], column.rows))
    assert isinstance(rows, CudaPositions)
    return rows
