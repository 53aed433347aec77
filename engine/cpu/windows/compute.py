"""The calls of one window over rows in its order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from bamquery.engine.cpu.frames import as_type
from bamquery.engine.cpu.kernels import Column, nulls
from bamquery.engine.cpu.windows.call_values import CallValues
from bamquery.engine.cpu.windows.rows import CpuWindowRows
from bamquery.engine.device import RestOfPartition
from bamquery.engine.execution.string_limits import LargeStringError
from bamquery.engine.windows.calls import call_values
from bamquery.plan.nodes import Window
from bamquery.statement_context.cancellation import check_cancelled


def window_columns(
    window: Window, batch: pa.RecordBatch, rest: RestOfPartition | None = None
) -> list[Column]:
    """The values of the window's calls for whole partitions of rows in its order, or for some of one's rows.

    Raises:
        ExecutionError: an argument, a bound or a value cannot be computed.
        LargeStringError: the strings of all rows take too much memory at once.
    """
    rows = batch.num_rows
    if not rows:
        return [nulls(0, call.type) for call in window.calls]
    return _columns(window, call_values(CpuWindowRows(batch), window, rest), 0, rows)


def window_portions(
    window: Window, batch: pa.RecordBatch, rest: RestOfPartition | None, start: int, stop: int
) -> Iterator[list[Column]]:
    """The same, of the rows from `start` to before `stop`, by as many rows as fit.

    Raises:
        ExecutionError: as `window_columns`.
        LargeStringError: a text of a single row takes too much memory.
    """
    if start == stop:
        yield [nulls(0, call.type) for call in window.calls]
        return
    answers = call_values(CpuWindowRows(batch), window, rest)
    count = batch.num_rows
    while start < stop:
        check_cancelled()
        end = min(start + count, stop)
        try:
            columns = _columns(window, answers, start, end)
        except LargeStringError:
            if end - start == 1:
                raise
            count = (end - start) // 2
            continue
        yield columns
        del columns
        start = end


def _columns(window: Window, answers: Sequence[CallValues], start: int, stop: int) -> list[Column]:
    columns = []
    for call, one in zip(window.calls, answers, strict=True):
        columns.append(as_type(one.compute_rows(start, stop), call.type))
        assert columns[-1].type == call.type, (call.call.function, columns[-1].type)
    return columns
