"""Calls over a window for one partition that does not fit in memory, portion by portion."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, Generic

import numpy as np

from bamquery.engine.device import Device, Frame, RestOfPartition
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.memory_budget import Reservation
from bamquery.engine.execution.string_limits import current_string_limits
from bamquery.engine.operators.base.bounded_copies import CopiedRows, portions_within
from bamquery.engine.operators.base.frame_sizing import drain_list
from bamquery.engine.operators.window.call_methods import CallMethod, function_names
from bamquery.engine.operators.window.lookahead import Lookahead, LookaheadBlocks, State
from bamquery.engine.operators.window.lookaround import LookaroundRows
from bamquery.engine.operators.window.partition_blocks import BlockCutter, PartitionBlock
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.errors import MemoryLimitError
from bamquery.plan.nodes import Field, Window
from bamquery.statement_context.cancellation import check_cancelled

_BLOCK_ROWS: Final = 1 << 19
"""Rows of a block at most: a fraction of a second, after which a query can stop."""


@dataclass(frozen=True, slots=True)
class CallRun(Generic[Frame]):
    """Some of the calls over rows, of whose values those of the portion's rows count."""

    calls: tuple[int, ...]
    window: Window
    rows: Frame
    rest: RestOfPartition
    first: int = 0


@dataclass(frozen=True, slots=True)
class WindowPortion(Generic[Frame]):
    """Rows, and what gives the values of all calls for them.

    Attributes:
        constants: calls with one value for all rows, as a frame of one row.
    """

    frame: Frame
    count: int
    columns: int
    runs: Sequence[CallRun[Frame]]
    constants: Sequence[tuple[int, Frame]]

    def compute(self, device: Device[Frame]) -> Iterator[Frame]:
        """The rows with the calls' values, in the calls' order, by as many as the calls give at once.

        Raises:
            ExecutionError: as for `Device.window_portions`.
        """
        calls = [call for run in self.runs for call in run.calls] + [call for call, _ in self.constants]
        places = np.argsort(calls) + self.columns
        values = [
            _BufferedValues(
                device, device.window_portions(run.window, run.rows, run.rest, run.first, self.count)
            )
            for run in self.runs
        ]
        done = 0
        while done < self.count:
            check_cancelled()
            count = min([self.count - done, *(one.ready() for one in values)])
            own = [(CopiedRows(device, row), np.zeros(count, np.int64)) for _, row in self.constants]
            if own:
                count = next(portions_within(own, current_string_limits().piece)).stop
            frames = [device.slice(self.frame, done, count), *(one.take(count) for one in values)]
            frames += [device.take(row, np.zeros(count, np.int64)) for _, row in self.constants]
            yield device.select(device.join_columns(frames), [*range(self.columns), *places.tolist()])
            done += count


class _BufferedValues(Generic[Frame]):
    """Values that come by portions, of which others want fewer rows at once."""

    def __init__(self, device: Device[Frame], portions: Iterator[Frame]) -> None:
        self._device = device
        self._portions = portions
        self._portion: Frame | None = None
        self._done = 0

    def ready(self) -> int:
        """Rows whose values are there; some are."""
        while self._portion is None or self._done == self._device.row_count(self._portion):
            self._portion = None  # before the next one is made
            self._portion, self._done = next(self._portions), 0
        return self._device.row_count(self._portion) - self._done

    def take(self, count: int) -> Frame:
        """The next ones."""
        assert self._portion is not None
        self._done += count
        return self._device.slice(self._portion, self._done - count, count)


@dataclass(slots=True)
class _Lookback:
    """What has come before a block.

    Attributes:
        groups: of peers, that have begun.
        peers: rows of the last of them, where it is in pieces.
        states: for each call that asks for it, the state of all rows.
        group_states: likewise of the rows before that group.
    """

    states: list[State | None]
    open_group_states: list[State | None]
    rows: int = 0
    groups: int = 0
    peers: int = 0


class LargePartition(Generic[Frame]):
    """The rows of one partition in portions, each with what its calls need of the other rows.

    Args:
        memory: what the portions are held by.
        busy: bytes of portions that are being computed, to which those given out are added; None has 0.
        needed: bytes for so many rows of so many bytes, and their values.
    """

    def __init__(
        self,
        context: ExecutionContext[Frame],
        window: Window,
        methods: Sequence[CallMethod],
        fields: Sequence[Field],
        profile: OperatorProfile,
        *,
        memory: Reservation,
        busy: deque[int],
        needed: Callable[[int, int], int],
    ) -> None:
        self._context = context
        self._device = context.device
        # All rows are of one partition: nobody has to compare its keys.
        self._window = replace(window, partition=())
        self._methods = tuple(methods)
        self._columns = len(fields)
        self._memory = memory
        self._profile = profile
        self._busy = busy
        self._needed = needed
        self._undrained = 0
        self._aggregations = [
            context.device.aggregation([], [method.call.call])
            if method.needs_state_before or method.needs_state_after or method.is_one_frame_a_group
            else None
            for method in methods
        ]
        target = memory.room // (4 * (context.threads + 2))
        most = _BLOCK_ROWS * context.device.task_size
        order = [key.expression for key in window.order] if any(m.peers for m in methods) else None
        # A group that must not be in pieces may be a portion that has the memory to itself.
        largest = memory.room // 2 if any(method.undivided for method in methods) else target
        self._cutter = BlockCutter(
            context.device,
            order,
            lambda rows, size: rows >= most or needed(rows, size) >= target,
            lambda rows, size: rows >= most or needed(rows, size) >= largest,
        )
        self._following = LookaheadBlocks(context, methods, self._aggregations, fields, profile)
        near = [i for i, method in enumerate(methods) if method.looks_around]
        self._near = LookaroundRows(context.device, self._window, methods, self._aggregations, near)
        if near:
            memory.what = f"{function_names([methods[i].call for i in near])} over a window"

    def portions(
        self, held: list[Frame], frames: Iterable[Frame]
    ) -> Generator[WindowPortion[Frame] | None, None, None]:
        """All rows of frames, none of which is empty: of those that are held, then of others.

        None comes where what was given out has to be done with before there is room for more.

        Raises:
            MemoryLimitError: rows that must be in memory together do not fit.
            StorageError: the folder has no room for the rows.
        """
        nothing: list[State | None] = [None] * len(self._methods)
        before = _Lookback(list(nothing), list(nothing))
        with (
            closing(self._cutter.blocks(chain(self._drain(held), frames))) as blocks,
            closing(self._following.blocks(blocks)) as known,
            closing(self._near.await_lookahead(known, self._room)) as ready,
        ):
            for one in ready:
                self._context.check_cancelled()
                if one is None:
                    yield None
                    continue
                self._profile.details["portions"] = self._profile.details.get("portions", 0) + 1
                block, following = one
                portion, size = self._portion(block, following, before)
                yield from self._room(size)
                self._busy.append(size)
                yield portion
                del portion
                self._advance(block, before)

    def _room(self, size: int) -> Generator[None, None, None]:
        """Hold what is held, and so many bytes more; if need be, once portions in work are done.

        Raises:
            MemoryLimitError: even so it does not fit.
        """
        waiting = self._cutter.bytes + self._following.bytes + self._near.bytes + self._undrained + size
        while sum(self._busy) and not self._memory.fits(waiting + sum(self._busy)):
            self._busy.append(0)
            yield None
        self._memory.resize(waiting + sum(self._busy))

    def _drain(self, held: list[Frame]) -> Generator[Frame, None, None]:
        self._undrained = sum(map(self._device.nbytes, held))
        for frame in drain_list(held):
            self._undrained -= self._device.nbytes(frame)
            yield frame

    def _portion(
        self, block: PartitionBlock[Frame], following: Lookahead, before: _Lookback
    ) -> tuple[WindowPortion[Frame], int]:
        """What gives a block's values, and the bytes that it takes."""
        if block.piece and not block.continues:
            before.open_group_states = list(before.states)
        constants: list[tuple[int, Frame]] = []
        plain: list[int] = []
        for i, method in enumerate(self._methods):
            if block.piece and method.undivided:
                raise self._undivided_error(method)
            if method.is_one_frame or (method.is_one_frame_a_group and block.piece):
                constants.append((i, self._constant(i, following, before)))
            elif not method.looks_around:
                plain.append(i)
        runs: list[CallRun[Frame]] = []
        size = self._needed(block.rows, self._device.nbytes(block.frame))
        if plain:
            rest = RestOfPartition(
                before.rows,
                following.rows,
                before.groups - block.continues,
                before.peers if block.continues else 0,
                following.peers,
                [before.states[i] for i in plain],
                [following.states_after[i] for i in plain],
            )
            runs.append(CallRun(tuple(plain), self._window_with(plain), block.frame, rest))
        if self._near.calls:
            rows, rest, first = self._near.surround(block, following, before.rows)
            bytes_near = self._device.nbytes(rows)
            # One after the other: what the first run takes is free for the second.
            size = max(size, self._needed(self._device.row_count(rows), bytes_near)) + bytes_near
            runs.append(CallRun(self._near.calls, self._window_with(self._near.calls), rows, rest, first))
        return WindowPortion(block.frame, block.rows, self._columns, runs, constants), size

    def _constant(self, call: int, following: Lookahead, before: _Lookback) -> Frame:
        """A call's value for all rows of the partition, or of a group that is in pieces."""
        method, aggregation = self._methods[call], self._aggregations[call]
        assert aggregation is not None
        if method.is_one_frame:
            return aggregation.final(following.partition_states[call])
        states = [
            before.open_group_states[call] if method.needs_state_before else None,
            following.group_states[call],
            following.states_after[call] if method.needs_state_after else None,
        ]
        return aggregation.final(aggregation.merge([state for state in states if state is not None]))

    def _advance(self, block: PartitionBlock[Frame], before: _Lookback) -> None:
        """The block now is before what comes."""
        before.peers = (before.peers if block.continues else 0) + block.rows if block.piece else 0
        for i, (method, aggregation) in enumerate(zip(self._methods, self._aggregations, strict=True)):
            if (
                aggregation is not None
                and method.needs_state_before
                and not method.is_one_frame
                and not method.looks_around
            ):
                own = aggregation.partial(block.frame)
                state = before.states[i]
                before.states[i] = own if state is None else aggregation.merge([state, own])
        before.rows += block.rows
        before.groups += block.groups
        self._near.advance(block)

    def _window_with(self, calls: Sequence[int]) -> Window:
        names = tuple(self._window.names[i] for i in calls)
        return replace(self._window, calls=tuple(self._methods[i].call for i in calls), names=names)

    def _undivided_error(self, method: CallMethod) -> MemoryLimitError:
        return MemoryLimitError(
            f"{function_names([method.call])} over such a window needs all rows in memory together "
            "which ORDER BY "
            "does not tell apart, and these do not fit memory_limit. Raise it with "
            "SET memory_limit = '...', or order by more"
        )
