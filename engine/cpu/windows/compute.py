"""The calls of one window over rows in its order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from bamquery.engine.cpu.expressions.evaluation import evaluate_columns
from bamquery.engine.cpu.frames import as_type, decode_dictionary
from bamquery.engine.cpu.kernels import Column, from_values, nulls
from bamquery.engine.cpu.windows.call_values import CallValues, ComputedValues
from bamquery.engine.cpu.windows.framed_aggregates import Outside, framed_aggregate
from bamquery.engine.cpu.windows.framed_values import framed_value
from bamquery.engine.cpu.windows.frames import Ranges, clip_frames, find_frames
from bamquery.engine.cpu.windows.partitions import Partitions, find_partitions
from bamquery.engine.cpu.windows.ranking import RANKINGS, neighbours, ntile
from bamquery.engine.device import RestOfPartition
from bamquery.engine.execution.string_limits import LargeStringError
from bamquery.plan.nodes import Window
from bamquery.plan.windows import WindowCall, WindowFrame
from bamquery.statement_context.cancellation import check_cancelled

_IN_FRAME = ("first_value", "last_value", "nth_value")


def window_columns(
    window: Window, batch: pa.RecordBatch, rest: RestOfPartition | None = None
) -> list[Column]:
    """The values of the window's calls for whole partitions of rows in its order, or for some of one's rows.

    Raises:
        ExecutionError: an argument, a bound or a value cannot be computed.
        LargeStringError: the texts of all rows take too much memory at once.
    """
    rows = batch.num_rows
    if not rows:
        return [nulls(0, call.type) for call in window.calls]
    return _columns(window, window_call_values(window, batch, rest), 0, rows)


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
    answers = window_call_values(window, batch, rest)
    count = stop - start
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


def window_call_values(
    window: Window, batch: pa.RecordBatch, rest: RestOfPartition | None
) -> list[CallValues]:
    """What gives each call's values; all that are not texts are there already.

    Raises:
        ExecutionError: an argument, a bound or a value cannot be computed.
    """
    rows = batch.num_rows
    partition = [decode_dictionary(column) for column in evaluate_columns(window.partition, batch)]
    order = [decode_dictionary(c) for c in evaluate_columns([key.expression for key in window.order], batch)]
    partitions = find_partitions(partition, order, rows, rest)
    frames: dict[WindowFrame, list[Ranges]] = {}
    found: list[CallValues] = []
    for number, call in enumerate(window.calls):
        check_cancelled()
        if call.frame not in frames and _has_frame(call):
            frames[call.frame] = find_frames(call.frame, partitions, window.order, batch)
        outside = None if rest is None else (rest.before[number], rest.after[number])
        answers = _call_values(call, partitions, frames.get(call.frame, []), batch, outside=outside)
        by_portions = pa.types.is_large_string(call.type) or pa.types.is_large_binary(call.type)
        found.append(answers if by_portions else ComputedValues(answers.compute_rows(0, rows)))
    return found


def _has_frame(call: WindowCall) -> bool:
    name = call.call.function
    return name not in RANKINGS and name not in ("ntile", "lag", "lead")


def _call_values(
    window: WindowCall,
    partitions: Partitions,
    frames: list[Ranges],
    batch: pa.RecordBatch,
    *,
    outside: Outside | None,
) -> CallValues:
    call = window.call
    name = call.function
    if name in RANKINGS:
        return ComputedValues(from_values(RANKINGS[name](partitions), call.type))
    if not (name in _IN_FRAME or name in ("ntile", "lag", "lead")):
        return framed_aggregate(call, batch, frames, outside)
    taken = call.arguments[:2] if name in ("lag", "lead") else call.arguments
    arguments = [decode_dictionary(column) for column in evaluate_columns(taken, batch)]
    if name == "ntile":
        return ComputedValues(ntile(partitions, arguments[0]))
    if name in _IN_FRAME:
        number = arguments[1] if len(arguments) > 1 else None
        frames = frames if outside is None else clip_frames(frames, batch.num_rows)
        return framed_value(name, arguments[0], number, frames, ignore_nulls=window.ignore_nulls)
    default = call.arguments[2]

    def defaults(start: int, stop: int) -> Column:
        return decode_dictionary(evaluate_columns([default], batch.slice(start, stop - start))[0])

    value, offset = arguments
    forward, nulls_out = name == "lead", window.ignore_nulls
    return neighbours(partitions, value, offset, defaults, forward=forward, ignore_nulls=nulls_out)
