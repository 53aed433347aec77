"""The calls of one window over rows in its order."""

from __future__ import annotations

from typing import Final

from bamquery.engine.device import RestOfPartition
from bamquery.engine.windows.framed_values import framed_value
from bamquery.engine.windows.frames import Frames
from bamquery.engine.windows.partitions import Partitions
from bamquery.engine.windows.ranges import Ranges
from bamquery.engine.windows.ranking import RANKINGS, neighbours, ntile
from bamquery.engine.windows.rows import A, C, Outside, WindowRows
from bamquery.engine.windows.vectors import V
from bamquery.plan.nodes import Window
from bamquery.plan.windows import WindowCall, WindowFrame
from bamquery.statement_context.cancellation import check_cancelled

_IN_FRAME: Final = ("first_value", "last_value", "nth_value")


def call_values(rows: WindowRows[V, C, A], window: Window, rest: RestOfPartition | None = None) -> list[A]:
    """What gives each call's values; all that are not strings are there already.

    The rows are those of whole partitions, or some of one's.

    Raises:
        ExecutionError: an argument, a bound or a value cannot be computed.
    """
    partitions = find_partitions(rows, window, rest)
    frames = Frames(rows, partitions, window.order)
    ranges: dict[WindowFrame, list[Ranges[V]]] = {}
    found: list[A] = []
    for number, call in enumerate(window.calls):
        check_cancelled()
        values = _values_by_place(rows, partitions, call)
        if values is None:
            if call.frame not in ranges:
                ranges[call.frame] = frames.find(call.frame)
            outside = None if rest is None else (rest.before[number], rest.after[number])
            values = _values_of_frames(rows, call, ranges[call.frame], outside)
        found.append(rows.materialize(values, call.type))
    return found


def find_partitions(
    rows: WindowRows[V, C, A], window: Window, rest: RestOfPartition | None = None
) -> Partitions[V]:
    """Partitions and peers of rows that are in order of both.

    Raises:
        ExecutionError: a key cannot be computed.
    """
    begins = rows.changes(window.partition)
    differs = begins | rows.changes([key.expression for key in window.order]) if window.order else begins
    return Partitions(rows.vectors, begins, differs, rest)


def _values_by_place(rows: WindowRows[V, C, A], partitions: Partitions[V], window: WindowCall) -> A | None:
    """Of functions that have no frame; None: it has one."""
    function = window.call.function
    if function in RANKINGS:
        return rows.to_values(RANKINGS[function](partitions), window.type)
    if function == "ntile":
        (counts,) = rows.evaluate(window.call.arguments)
        return ntile(rows, partitions, counts)
    if function in ("lag", "lead"):
        return neighbours(rows, partitions, window)
    return None


def _values_of_frames(
    rows: WindowRows[V, C, A], window: WindowCall, frames: list[Ranges[V]], outside: Outside | None
) -> A:
    if window.call.function not in _IN_FRAME:
        return rows.aggregate(window.call, frames, outside)
    if outside is not None:
        frames = [frame.clip(rows.count) for frame in frames]
    return framed_value(rows, window, frames)
