"""Calls over windows."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from typing import Final, Generic

from bamquery.engine.device import Device, Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.execution.ordered_map import ordered_map
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.base.frame_sizing import GATHERED_ROWS, slice_frame
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.window.call_methods import CallMethod, choose_method, function_names
from bamquery.engine.operators.window.large_partition import LargePartition, WindowPortion
from bamquery.engine.operators.window.partition_starts import PartitionStarts
from bamquery.engine.operators.window.row_bytes import needed_row_bytes
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan import nodes
from bamquery.plan.expressions import ColumnRef, Expression, referenced_columns
from bamquery.plan.windows import WindowCall

_AT_ONCE: Final = 2
"""Portions of a piece's answer that a thread makes ahead; where strings are large, there are more."""


class Window(Operator[Frame], Generic[Frame]):
    """The child's columns and the calls' values; the child's rows come in the window's order.

    Whole partitions are gathered until they are worth a task, and computed on all threads. A partition that
    does not fit `memory_limit` is computed in portions where its calls allow it; else it is an error.
    """

    reservations = 1
    runs_again = True

    def __init__(self, child: Operator[Frame], window: nodes.Window) -> None:
        details = {
            "partition": len(window.partition),
            "order": len(window.order),
            "calls": [*window.names],
        }
        super().__init__(window.fields, (child,), OperatorProfile("Window", details))
        self._window = window
        self._row_bytes = needed_row_bytes(window.calls)

    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        """A condition on what partitions are made by leaves out whole partitions."""
        keys = {key.index for key in self._window.partition if isinstance(key, ColumnRef)}
        read = referenced_columns(value)
        return bool(read) and read <= keys and self.children[0].push_dynamic_filter(value, dynamic_filter)

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """The rows, partition by partition."""
        device = context.device

        def compute(piece: Frame | WindowPortion[Frame] | None) -> Iterator[Frame]:
            if piece is None:
                return iter(())
            made = (
                piece.compute(device)
                if isinstance(piece, WindowPortion)
                else self._compute_piece(device, piece)
            )
            return chain(list(islice(made, _AT_ONCE)), made)

        busy: deque[int] = deque()  # bytes of pieces that are computed, or whose answers wait
        with (
            context.memory.reservation("a window") as memory,
            closing(self.children[0].frames(context)) as frames,
            closing(self._collect_partitions(context, frames, memory, busy)) as partitions,
            closing(ordered_map(context, compute, partitions)) as computed,
        ):
            for answer in computed:
                self.profile.details["peak_memory"] = memory.peak
                for frame in answer:
                    yield from slice_frame(device, frame)
                    del frame  # nobody has it while more rows are gathered
                del answer
                busy.popleft()

    def _compute_piece(self, device: Device[Frame], piece: Frame) -> Iterator[Frame]:
        """Rows of whole partitions with their values, by as many as the calls give at once."""
        done = 0
        for values in device.window_portions(self._window, piece):
            count = device.row_count(values)
            yield device.join_columns([device.slice(piece, done, count), values])
            del values
            done += count

    def _collect_partitions(
        self,
        context: ExecutionContext[Frame],
        frames: Iterable[Frame],
        memory: Reservation,
        busy: deque[int],
    ) -> Generator[Frame | WindowPortion[Frame] | None, None, None]:
        """Rows of whole partitions, many partitions at once where they are small; portions of large ones.

        What each of them takes goes to the end of `busy`, for the caller to take from its front.
        """
        device = context.device
        held: list[Frame] = []
        rows = size = last = 0  # and the first row held of the last partition
        share = memory.room // (2 * (context.threads + 2))
        given = PartitionStarts(device, self._window.partition, self._cut_small(device, frames, share // 2))
        for frame, begin in given:
            rest = frame
            if begin is not None:
                last = rows + begin
                before = device.slice(frame, 0, begin)
                needed = self._needed_bytes(last, size + device.nbytes(before))
                if last and (last >= GATHERED_ROWS or needed >= share):
                    piece = device.concatenate([*held, before])
                    held, rows, size, last = [], 0, 0, 0
                    busy.append(needed)
                    yield piece
                    del piece
                    rest = device.slice(frame, begin, device.row_count(frame) - begin)
            held.append(rest)
            rows += device.row_count(rest)
            size += device.nbytes(rest)
            if not memory.fits(self._needed_bytes(rows, size) + sum(busy)):
                methods = self._methods(context, memory)
                if methods is None:
                    memory.resize(self._needed_bytes(rows, size) + sum(busy))
                    continue  # others have given memory back since
                yield from self._compute_large(
                    context, methods, held, last, given.rest_of_partition(), memory=memory, busy=busy
                )
                held, rows, size = [], 0, 0
        if held:
            busy.append(self._needed_bytes(rows, size))
            yield device.concatenate(held)

    def _compute_large(
        self,
        context: ExecutionContext[Frame],
        methods: list[CallMethod],
        held: list[Frame],
        first: int,
        rest: Iterable[Frame],
        *,
        memory: Reservation,
        busy: deque[int],
    ) -> Generator[Frame | WindowPortion[Frame] | None, None, None]:
        """Rows held, which do not fit: from the row `first` on they are of one partition, as is the rest."""
        device = context.device
        if first:
            joined = device.concatenate(held)
            begun = device.slice(joined, 0, first)
            behind = device.slice(joined, first, device.row_count(joined) - first)
            # In small frames, as they came: blocks are made of whole ones.
            held[:] = self._cut_small(device, [behind], memory.room // (4 * (context.threads + 2)))
            del joined, behind
            busy.append(self._needed_bytes(first, device.nbytes(begun)))
            yield begun
            del begun
        portions = LargePartition(
            context,
            self._window,
            methods,
            self.children[0].fields,
            self.profile,
            memory=memory,
            busy=busy,
            needed=self._needed_bytes,
        )
        yield from portions.portions(held, rest)

    def _cut_small(
        self, device: Device[Frame], frames: Iterable[Frame], most: int
    ) -> Generator[Frame, None, None]:
        """The rows in frames whose values take no more than so many bytes to compute; none is empty."""
        for frame in frames:
            rows = device.row_count(frame)
            needed = self._needed_bytes(rows, device.nbytes(frame))
            length = max(most * rows // max(needed, 1), 1)
            for start in range(0, rows, length):
                yield device.slice(frame, start, length)

    def _needed_bytes(self, rows: int, size: int) -> int:
        """Bytes for rows, those rows joined, their values and what these take to compute."""
        return 3 * size + rows * self._row_bytes

    def _methods(self, context: ExecutionContext[Frame], memory: Reservation) -> list[CallMethod] | None:
        """How a partition's calls are computed in portions; None where errors name those that cannot be."""
        methods: list[CallMethod] = []
        others: list[WindowCall] = []
        for call in self._window.calls:
            method = choose_method(call, context.device)
            if method is None or (method.needs_file and context.spill_folder is None):
                others.append(call)
            else:
                methods.append(method)
        if not others:
            return methods
        memory.what = f"{function_names(others)} over a window"
        return None
