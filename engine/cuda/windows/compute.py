"""The calls of one window over rows in its order."""

from __future__ import annotations

from typing import Final

import pylibcudf as plc

from bamquery.cancellation import check_cancelled
from bamquery.engine.cuda.expressions import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.kernels import Kernels, Operand
from bamquery.engine.cuda.types import device_type
from bamquery.engine.cuda.windows.framed_aggregates import Outside, framed_aggregate
from bamquery.engine.cuda.windows.framed_values import framed_value
from bamquery.engine.cuda.windows.frames import Ranges, find_frames
from bamquery.engine.cuda.windows.partitions import Partitions, find_partitions
from bamquery.engine.cuda.windows.ranking import RANKINGS, neighbour, ntile
from bamquery.engine.device import RestOfPartition
from bamquery.plan.expressions import Expression
from bamquery.plan.nodes import Window
from bamquery.plan.types import value_type
from bamquery.plan.windows import WindowCall, WindowFrame

_IN_FRAME: Final = ("first_value", "last_value", "nth_value")
_BY_PLACE: Final = ("ntile", "lag", "lead")


def window_columns(
    kernels: Kernels,
    window: Window,
    frame: CudaFrame,
    rest: RestOfPartition | None = None,
) -> list[plc.Column]:
    """The values of the window's calls for whole partitions of rows in its order, or for some of one's rows.

    Raises:
        ExecutionError: an argument, a bound or a value cannot be computed.
    """
    if not frame.rows:
        return [kernels.nulls(0, value_type(call.type)) for call in window.calls]

    def operands(expressions: tuple[Expression, ...]) -> list[Operand]:
        columns = evaluate_columns(kernels, expressions, frame)
        return [Operand(value_type(e.type), c) for e, c in zip(expressions, columns, strict=True)]

    order = tuple(key.expression for key in window.order)
    partitions = find_partitions(kernels, operands(window.partition), operands(order), frame.rows, rest)
    frames: dict[WindowFrame, list[Ranges]] = {}
    columns: list[plc.Column] = []
    for number, call in enumerate(window.calls):
        check_cancelled()
        if call.frame not in frames and _has_frame(call):
            frames[call.frame] = find_frames(call.frame, partitions, window.order, frame)
        outside = None if rest is None else (rest.before[number], rest.after[number])
        column = _value(partitions, call, frames.get(call.frame, []), frame, outside=outside)
        assert column.type().id() == device_type(call.type).id(), call.call.function
        columns.append(column)
    return columns


def _has_frame(call: WindowCall) -> bool:
    name = call.call.function
    return name not in RANKINGS and name not in _BY_PLACE


def _value(
    partitions: Partitions,
    window: WindowCall,
    frames: list[Ranges],
    frame: CudaFrame,
    *,
    outside: Outside | None,
) -> plc.Column:
    kernels, call = partitions.kernels, window.call
    name = call.function
    if name in RANKINGS:
        return kernels.convert(RANKINGS[name](partitions).column, device_type(call.type))
    if name not in _IN_FRAME and name not in _BY_PLACE:
        return framed_aggregate(kernels, call, frame, frames, outside=outside)
    arguments = evaluate_columns(kernels, call.arguments, frame)
    if name == "ntile":
        return ntile(partitions, arguments[0])
    if name in _IN_FRAME:
        number = arguments[1] if len(arguments) > 1 else None
        frames = frames if outside is None else [ranges.clipped(frame.rows) for ranges in frames]
        return framed_value(kernels, name, arguments[0], number, frames, ignore_nulls=window.ignore_nulls)
    value, offset, default = arguments
    kind = value_type(call.arguments[0].type)
    forward, nulls_out = name == "lead", window.ignore_nulls
    return neighbour(partitions, value, offset, default, kind, forward=forward, ignore_nulls=nulls_out)
