"""Calls over windows."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from contextlib import closing
from typing import Generic

import pyarrow as pa

from bamquery.engine.context import ExecutionContext
from bamquery.engine.device import Device, Frame
from bamquery.engine.late_filter import LateFilter
from bamquery.engine.memory import Reservation
from bamquery.engine.operators.framing import GATHERED_ROWS, sliced
from bamquery.engine.operators.operator import Operator
from bamquery.engine.parallel import ordered_map
from bamquery.engine.profile import OperatorProfile
from bamquery.plan import nodes
from bamquery.plan.expressions import Call, ColumnRef, Expression, referenced_columns

_STATE_BYTES = 64
"""What a call holds of each row at most while it is computed: states, positions, the frame."""


class Window(Operator[Frame], Generic[Frame]):
    """The child's columns and the calls' values; the child's rows come in the window's order.

    Whole partitions are gathered until they are worth a task, and computed on all threads. A partition is
    held as a whole, within `memory_limit`.
    """

    reservations = 1

    def __init__(self, child: Operator[Frame], window: nodes.Window) -> None:
        details = {
            "partition": len(window.partition),
            "order": len(window.order),
            "calls": [*window.names],
        }
        super().__init__(window.fields, (child,), OperatorProfile("Window", details))
        self._window = window

    def narrow(self, value: Expression, late: LateFilter) -> bool:
        """A condition on what partitions are made by leaves out whole partitions."""
        keys = {key.index for key in self._window.partition if isinstance(key, ColumnRef)}
        read = referenced_columns(value)
        return bool(read) and read <= keys and self.children[0].narrow(value, late)

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The rows, partition by partition."""
        device = context.device

        def compute(rows: Frame) -> Frame:
            values = device.window(self._window, rows, context.check_cancelled)
            return device.join_columns([rows, values])

        busy: deque[int] = deque()  # bytes of pieces that are computed, or whose answers wait
        with (
            context.memory.reservation("a window") as memory,
            closing(self.children[0].frames(context)) as frames,
            closing(self._gathered(context, frames, memory, busy)) as partitions,
            closing(ordered_map(context, compute, partitions)) as computed,
        ):
            for frame in computed:
                self.profile.details["peak_memory"] = memory.peak
                yield from sliced(device, frame)
                del frame  # nobody has it while more rows are gathered
                busy.popleft()

    def _gathered(
        self,
        context: ExecutionContext[Frame],
        frames: Iterable[Frame],
        memory: Reservation,
        busy: deque[int],
    ) -> Generator[Frame, None, None]:
        """Rows of whole partitions, many partitions at once where they are small.

        What each of them takes goes to the end of `busy`, for the caller to take from its front.
        """
        device = context.device
        held: list[Frame] = []
        rows = size = 0
        last: Frame | None = None  # the keys of the row before
        share = memory.room // (2 * (context.threads + 2))
        for frame in self._small(device, frames, share // 2):
            count = device.row_count(frame)
            keys = device.evaluate(self._window.partition, frame)
            begin = self._last_start(device, last, keys)
            last = device.slice(keys, count - 1, 1)
            rest = frame
            if begin is not None and rows + begin:
                begun = device.slice(frame, 0, begin)
                needed = self._needed(rows + begin, size + device.nbytes(begun))
                if rows + begin >= GATHERED_ROWS or needed >= share:
                    held.append(begun)
                    piece = device.concatenate(held)
                    held, rows, size = [], 0, 0
                    busy.append(needed)
                    yield piece
                    del piece
                    rest = device.slice(frame, begin, count - begin)
            held.append(rest)
            rows += device.row_count(rest)
            size += device.nbytes(rest)
            memory.resize(self._needed(rows, size) + sum(busy))
        if held:
            busy.append(self._needed(rows, size))
            yield device.concatenate(held)

    def _small(
        self, device: Device[Frame], frames: Iterable[Frame], most: int
    ) -> Generator[Frame, None, None]:
        """The rows in frames whose values take no more than so many bytes to compute; none is empty."""
        for frame in frames:
            rows = device.row_count(frame)
            needed = self._needed(rows, device.nbytes(frame))
            length = max(most * rows // max(needed, 1), 1)
            for start in range(0, rows, length):
                yield device.slice(frame, start, length)

    def _needed(self, rows: int, size: int) -> int:
        """Bytes for rows, those rows joined, their values and what these take to compute."""
        return 3 * size + rows * _STATE_BYTES * len(self._window.calls)

    def _last_start(self, device: Device[Frame], last: Frame | None, keys: Frame) -> int | None:
        """Where the last partition begins that begins among the rows, if one does."""
        count, width = device.row_count(keys), len(self._window.partition)
        if not width:
            return None
        before = device.slice(keys, 0, count - 1)
        first = device.slice(keys, 0, 1) if last is None else last
        pairs = device.join_columns([device.concatenate([first, before]), keys])
        changes = device.matching(_any_differs(self._window.partition), pairs)
        return int(changes[-1]) if len(changes) else None


def _any_differs(keys: tuple[Expression, ...]) -> Expression:
    """Over two rows side by side: whether a key is another."""
    tests: list[Expression] = []
    for i, key in enumerate(keys):
        sides = (ColumnRef(i, "before", key.type), ColumnRef(len(keys) + i, "here", key.type))
        tests.append(Call("is_distinct_from", sides, pa.bool_()))
    return tests[0] if len(tests) == 1 else Call("or", tuple(tests), pa.bool_())
