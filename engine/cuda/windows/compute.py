"""The calls of one window over rows in its order."""

from __future__ import annotations

from collections.abc import Sequence

import pylibcudf as plc

from bamquery.data_types.type_groups import value_type
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.windows.call_values import CallValues, ComputedValues
from bamquery.engine.cuda.windows.rows import CudaWindowRows
from bamquery.engine.device import RestOfPartition
from bamquery.engine.windows.calls import call_values
from bamquery.plan.nodes import Window


def window_call_values(
    kernels: Kernels, window: Window, frame: CudaFrame, rest: RestOfPartition | None = None
) -> list[CallValues]:
    """What gives the values of the window's calls, also of no rows.

    Raises:
        ExecutionError: an argument, a bound or a value cannot be computed.
    """
    if frame.rows:
        return call_values(CudaWindowRows(kernels, frame), window, rest)
    return [ComputedValues(kernels, kernels.nulls(0, value_type(call.type))) for call in window.calls]


def window_columns(window: Window, values: Sequence[CallValues], start: int, stop: int) -> list[plc.Column]:
    """The values of the rows from `start` to before `stop`.

    Raises:
        ExecutionError: a value cannot be computed.
    """
    columns = []
    for call, one in zip(window.calls, values, strict=True):
        columns.append(one.compute_rows(start, stop))
        assert columns[-1].type().id() == device_type(call.type).id(), call.call.function
    return columns
