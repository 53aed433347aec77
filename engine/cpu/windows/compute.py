"""The calls of one window over rows in its order."""

from __future__ import annotations

import pyarrow as pa

from bamquery.cancellation import check_cancelled
from bamquery.engine.cpu.expressions import evaluate_columns
from bamquery.engine.cpu.frames import as_type, decoded
from bamquery.engine.cpu.kernels import Column, from_values, nulls
from bamquery.engine.cpu.windows.framed_aggregates import Outside, framed_aggregate
from bamquery.engine.cpu.windows.framed_values import framed_value
from bamquery.engine.cpu.windows.frames import Ranges, clipped, find_frames
from bamquery.engine.cpu.windows.partitions import Partitions, find_partitions
from bamquery.engine.cpu.windows.ranking import RANKINGS, neighbour, ntile
from bamquery.engine.device import RestOfPartition
from bamquery.plan.nodes import Window
from bamquery.plan.windows import WindowCall, WindowFrame

_IN_FRAME = ("first_value", "last_value", "nth_value")


def window_columns(
    window: Window, batch: pa.RecordBatch, rest: RestOfPartition | None = None
) -> list[Column]:
    """The values of the window's calls for whole partitions of rows in its order, or for some of one's rows.

    Raises:
        ExecutionError: an argument, a bound or a value cannot be computed.
    """
    rows = batch.num_rows
    if not rows:
        return [nulls(0, call.type) for call in window.calls]
    partition = [decoded(column) for column in evaluate_columns(window.partition, batch)]
    order = [decoded(c) for c in evaluate_columns([key.expression for key in window.order], batch)]
    partitions = find_partitions(partition, order, rows, rest)
    frames: dict[WindowFrame, list[Ranges]] = {}
    columns: list[Column] = []
    for number, call in enumerate(window.calls):
        check_cancelled()
        if call.frame not in frames and _has_frame(call):
            frames[call.frame] = find_frames(call.frame, partitions, window.order, batch)
        outside = None if rest is None else (rest.before[number], rest.after[number])
        column = _value(call, partitions, frames.get(call.frame, []), batch, outside=outside)
        columns.append(as_type(column, call.type))
        assert columns[-1].type == call.type, (call.call.function, columns[-1].type)
    return columns


def _has_frame(call: WindowCall) -> bool:
    name = call.call.function
    return name not in RANKINGS and name not in ("ntile", "lag", "lead")


def _value(
    window: WindowCall,
    partitions: Partitions,
    frames: list[Ranges],
    batch: pa.RecordBatch,
    *,
    outside: Outside | None,
) -> Column:
    call = window.call
    name = call.function
    if name in RANKINGS:
        return from_values(RANKINGS[name](partitions), call.type)
    if not (name in _IN_FRAME or name in ("ntile", "lag", "lead")):
        return framed_aggregate(call, batch, frames, outside)
    arguments = [decoded(column) for column in evaluate_columns(call.arguments, batch)]
    if name == "ntile":
        return ntile(partitions, arguments[0])
    if name in _IN_FRAME:
        number = arguments[1] if len(arguments) > 1 else None
        frames = frames if outside is None else clipped(frames, batch.num_rows)
        return framed_value(name, arguments[0], number, frames, ignore_nulls=window.ignore_nulls)
    value, offset, default = arguments
    forward, nulls_out = name == "lead", window.ignore_nulls
    return neighbour(partitions, value, offset, default, forward=forward, ignore_nulls=nulls_out)
