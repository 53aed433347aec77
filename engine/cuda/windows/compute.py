"""The calls of one window over rows in its order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.types import TypeId

from bamquery.data_types.type_groups import value_type
from bamquery.engine.cuda.expressions.evaluation import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.kernels import Kernels, Operand, Side
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.windows.answers import Answer, Known
from bamquery.engine.cuda.windows.framed_aggregates import framed_aggregate
from bamquery.engine.cuda.windows.framed_values import framed_value
from bamquery.engine.cuda.windows.frames import Ranges, find_frames
from bamquery.engine.cuda.windows.partitions import Partitions, find_partitions
from bamquery.engine.cuda.windows.ranking import RANKINGS, neighbours, ntile
from bamquery.engine.cuda.windows.string_ranks import Outside
from bamquery.engine.device import RestOfPartition
from bamquery.plan.expressions import Expression, Literal
from bamquery.plan.nodes import Window
from bamquery.plan.windows import WindowCall, WindowFrame
from bamquery.statement_context.cancellation import check_cancelled

_IN_FRAME: Final = ("first_value", "last_value", "nth_value")
_BY_PLACE: Final = ("ntile", "lag", "lead")


def window_answers(
    kernels: Kernels,
    window: Window,
    frame: CudaFrame,
    rest: RestOfPartition | None = None,
) -> list[Answer]:
    """What gives the values of the window's calls; all that are not texts are there already.

    The rows, in the window's order, are those of whole partitions, or some of one's.

    Raises:
        ExecutionError: an argument, a bound or a value cannot be computed.
    """
    if not frame.rows:
        return [Known(kernels, kernels.nulls(0, value_type(call.type))) for call in window.calls]

    def operands(expressions: tuple[Expression, ...]) -> list[Operand]:
        columns = evaluate_columns(kernels, expressions, frame)
        return [Operand(value_type(e.type), c) for e, c in zip(expressions, columns, strict=True)]

    order = tuple(key.expression for key in window.order)
    partitions = find_partitions(kernels, operands(window.partition), operands(order), frame.rows, rest)
    frames: dict[WindowFrame, list[Ranges]] = {}
    answers: list[Answer] = []
    for number, call in enumerate(window.calls):
        check_cancelled()
        if call.frame not in frames and _has_frame(call):
            frames[call.frame] = find_frames(call.frame, partitions, window.order, frame)
        outside = None if rest is None else (rest.before[number], rest.after[number])
        answer = _answer(partitions, call, frames.get(call.frame, []), frame, outside=outside)
        by_portions = device_type(call.type).id() == TypeId.STRING
        answers.append(answer if by_portions else Known(kernels, answer.of(0, frame.rows)))
    return answers


def window_columns(window: Window, answers: Sequence[Answer], start: int, stop: int) -> list[plc.Column]:
    """The values of the rows from `start` to before `stop`.

    Raises:
        ExecutionError: a value cannot be computed.
    """
    columns = []
    for call, answer in zip(window.calls, answers, strict=True):
        columns.append(answer.of(start, stop))
        assert columns[-1].type().id() == device_type(call.type).id(), call.call.function
    return columns


def _has_frame(call: WindowCall) -> bool:
    name = call.call.function
    return name not in RANKINGS and name not in _BY_PLACE


def _answer(
    partitions: Partitions,
    window: WindowCall,
    frames: list[Ranges],
    frame: CudaFrame,
    *,
    outside: Outside | None,
) -> Answer:
    kernels, call = partitions.kernels, window.call
    name = call.function
    if name in RANKINGS:
        return Known(kernels, kernels.convert(RANKINGS[name](partitions).column, device_type(call.type)))
    if name not in _IN_FRAME and name not in _BY_PLACE:
        return framed_aggregate(kernels, call, frame, frames, outside=outside)
    neighbour = name in ("lag", "lead")
    arguments = evaluate_columns(kernels, call.arguments[:2] if neighbour else call.arguments, frame)
    if name == "ntile":
        return Known(kernels, ntile(partitions, arguments[0]))
    if name in _IN_FRAME:
        number = arguments[1] if len(arguments) > 1 else None
        frames = frames if outside is None else [ranges.clip(frame.rows) for ranges in frames]
        return framed_value(kernels, name, arguments[0], number, frames, ignore_nulls=window.ignore_nulls)
    value, offset = arguments
    kind = value_type(call.arguments[0].type)
    default = _default(kernels, call.arguments[2], kind, frame)
    forward, nulls_out = name == "lead", window.ignore_nulls
    return neighbours(partitions, value, offset, default, kind, forward=forward, ignore_nulls=nulls_out)


def _default(kernels: Kernels, expression: Expression, kind: pa.DataType, frame: CudaFrame) -> Side:
    """A constant as one value: on all rows a long text would take what it takes so many times."""
    if isinstance(expression, Literal) and expression.value.type == kind:
        return kernels.scalar(expression.value)
    (column,) = evaluate_columns(kernels, [expression], frame)
    return column
