"""Rows around a block of a partition, for calls whose frames reach a number of rows beyond it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, Generic

import pyarrow as pa

from bamquery.engine.device import Aggregation, Device, Frame, RestOfPartition
from bamquery.engine.operators.window.call_methods import CallMethod
from bamquery.engine.operators.window.lookahead import Lookahead, State
from bamquery.engine.operators.window.partition_blocks import PartitionBlock
from bamquery.plan.expressions import AggregateCall
from bamquery.plan.nodes import Field, Window
from bamquery.plan.windows import WindowCall, WindowFrame

_COUNT: Final = pa.int64()
_Known = tuple[PartitionBlock[Frame], Lookahead]


class LookaroundRows(Generic[Frame]):
    """The last rows before a block, and the first ones behind it.

    Attributes:
        calls: numbers of the calls that want them.
    """

    def __init__(
        self,
        device: Device[Frame],
        window: Window,
        methods: Sequence[CallMethod],
        aggregations: Sequence[Aggregation[Frame, Any] | None],
        calls: Sequence[int],
    ) -> None:
        self._device = device
        self._window = window
        self._methods = tuple(methods)
        self._aggregations = tuple(aggregations)
        self.calls: Final = tuple(calls)
        self._back = max((methods[i].lookback for i in calls), default=0)
        self._ahead = max((methods[i].lookahead for i in calls), default=0)
        self._reaches_back = _counts(frame for i in calls for frame in methods[i].reaches_back)
        self._reaches_ahead = _counts(frame for i in calls for frame in methods[i].reaches_ahead)
        self._waiting: deque[_Known[Frame]] = deque()
        self._ended = False
        self._tail: Frame | None = None
        self._states: dict[int, State] = {}  # of the rows before the tail

    @property
    def bytes(self) -> int:
        """That the rows held take."""
        tail = 0 if self._tail is None else self._device.nbytes(self._tail)
        return tail + sum(self._device.nbytes(block.frame) for block, _ in self._waiting)

    def await_lookahead(
        self, known: Iterator[_Known[Frame]], room: Callable[[int], Iterable[None]]
    ) -> Generator[_Known[Frame] | None, None, None]:
        """The same blocks in order, each once the rows behind it are here.

        Whenever more rows are held, what `room` gives comes between.
        """
        while True:
            while not self._ended and not self._has_lookahead():
                one = next(known, None)
                if one is None:
                    self._ended = True
                else:
                    self._waiting.append(one)
                    yield from room(0)
            if not self._waiting:
                return
            yield self._waiting.popleft()

    def _has_lookahead(self) -> bool:
        """Whether the rows behind the next block are here."""
        if not self._waiting or self._count_rows_ahead() < self._ahead:
            return False
        if not self._reaches_ahead:
            return True
        first, *behind = (block for block, _ in self._waiting)
        last = self._device.slice(first.frame, first.rows - 1, 1)
        rows = self._device.concatenate([last, *(block.frame for block in behind)])
        # Where the frame ends before the rows do, nothing behind them belongs to it.
        return self._count_frame_rows(self._reaches_ahead, rows, 0) < self._device.row_count(rows)

    def _count_rows_ahead(self) -> int:
        return sum(block.rows for block, _ in islice(self._waiting, 1, None))

    def _count_frame_rows(self, calls: tuple[WindowCall, ...], rows: Frame, row: int) -> int:
        """Rows in the largest of some frames of a row."""
        names = tuple(str(i) for i in range(len(calls)))
        values = self._device.window(replace(self._window, calls=calls, names=names), rows)
        fields = [Field(name, _COUNT) for name in names]
        batch = self._device.to_arrow(self._device.slice(values, row, 1), fields)
        return max(int(column[0].as_py()) for column in batch.columns)

    def surround(
        self, block: PartitionBlock[Frame], following: Lookahead, rows_before: int
    ) -> tuple[Frame, RestOfPartition, int]:
        """The block among rows near it, what else the partition has, and where the block begins."""
        frames = [] if self._tail is None else [self._tail]
        first = sum(map(self._device.row_count, frames))
        frames.append(block.frame)
        # Of peers, the frame's or the row's, all are here.
        wanted = sum(b.rows for b, _ in self._waiting) if self._reaches_ahead else self._ahead
        after = {i: following.states_after[i] for i in self.calls}
        for one, behind in self._waiting:
            taken = min(wanted, one.rows)
            if taken:
                frames.append(self._device.slice(one.frame, 0, taken))
                left = self._device.slice(one.frame, taken, one.rows - taken)
                after = {i: self._merge_states(i, left, behind.states_after[i]) for i in self.calls}
            wanted -= taken
        rest = RestOfPartition(
            rows_before - first,
            int(not self._ended),  # at least: how many does not matter
            before=[self._states.get(i) for i in self.calls],
            after=[after[i] for i in self.calls],
        )
        return self._device.concatenate(frames), rest, first

    def advance(self, block: PartitionBlock[Frame]) -> None:
        """The block now is before what comes."""
        if not self.calls:
            return
        device = self._device
        rows = block.frame if self._tail is None else device.concatenate([self._tail, block.frame])
        count = device.row_count(rows)
        back = self._back
        if self._reaches_back:
            back = max(back, self._count_frame_rows(self._reaches_back, rows, count - 1))
        left = max(count - back, 0)
        self._tail = device.slice(rows, left, count - left) if count > left else None
        gone = device.slice(rows, 0, left)
        for i in self.calls if left else ():
            aggregation = self._aggregations[i]
            if aggregation is not None and self._methods[i].needs_state_before:
                own = aggregation.partial(gone)
                state = self._states.get(i)
                self._states[i] = own if state is None else aggregation.merge([state, own])

    def _merge_states(self, call: int, rows: Frame, behind: State | None) -> State | None:
        """The state of rows and of all behind them, where a call asks for it."""
        aggregation = self._aggregations[call]
        if aggregation is None or not self._methods[call].needs_state_after:
            return None
        own = aggregation.partial(rows)
        return own if behind is None else aggregation.merge([own, behind])


def _counts(frames: Iterable[WindowFrame]) -> tuple[WindowCall, ...]:
    """Calls that count the rows of frames."""
    rows = AggregateCall("count_star", (), _COUNT)
    return tuple(WindowCall(rows, frame) for frame in dict.fromkeys(frames))
