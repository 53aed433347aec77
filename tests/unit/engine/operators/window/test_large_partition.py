"""Portions of a large partition: what they give by and by, and what is held, which is waited for."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.device import RestOfPartition
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.execution.string_limits import StringLimits, use_string_limits
from bamquery.engine.operators.window import large_partition
from bamquery.engine.operators.window.large_partition import CallRun, LargePartition, WindowPortion
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.settings import Settings
from bamquery.errors import MemoryLimitError
from bamquery.plan import nodes
from bamquery.plan.expressions import AggregateCall
from bamquery.plan.windows import WindowCall
from bamquery.statement_context.cancellation import use_cancellation_check


def test_portions_in_work_are_waited_for() -> None:
    busy: deque[int] = deque()
    window = nodes.Window(nodes.Values(pa.record_batch([pa.array([1])], ["a"])), (), (), (), ())
    with (
        ExecutionContext(CpuDevice(), Settings().with_value("memory_limit", "1MB")) as context,
        context.memory.reservation("a window") as memory,
    ):
        tenth = memory.room // 10
        partition = LargePartition(
            context,
            window,
            [],
            window.fields,
            OperatorProfile("Window"),
            memory=memory,
            busy=busy,
            needed=lambda rows, size: size,
        )
        assert list(partition._room(4 * tenth)) == []
        assert memory.held == 4 * tenth
        busy.extend([3 * tenth, 4 * tenth])
        waits = partition._room(5 * tenth)
        assert next(waits) is None
        assert next(waits) is None  # nothing has become free yet
        busy.popleft()
        assert next(waits, "room") == "room"
        assert memory.held == 9 * tenth
        # What never fits is not waited for once nothing is in work.
        waits = partition._room(11 * tenth)
        assert next(waits) is None
        busy.clear()
        with pytest.raises(MemoryLimitError, match="a window"):
            next(waits)


def test_rows_that_wait_to_be_cut_are_held() -> None:
    """Those that a window had collected before it knew how large the partition is."""
    window = nodes.Window(nodes.Values(pa.record_batch([pa.array([1])], ["a"])), (), (), (), ())
    frames = [pa.record_batch([pa.array(range(rows), pa.int64())], ["a"]) for rows in (10, 20, 30)]
    with (
        ExecutionContext(CpuDevice(), Settings()) as context,
        context.memory.reservation("a window") as memory,
    ):
        partition = LargePartition(
            context,
            window,
            [],
            window.fields,
            OperatorProfile("Window"),
            memory=memory,
            busy=deque(),
            needed=lambda rows, size: size,
        )
        waiting = []
        for _ in partition._drain(frames):
            assert list(partition._room(5)) == []
            waiting.append(memory.held - 5)
    assert waiting == [8 * 50, 8 * 30, 0]


class _Cutting(CpuDevice):
    """Which gives the values of a call by portions of as many rows as are its name."""

    def window_portions(self, window: nodes.Window, *rows: Any, **more: Any) -> Iterator[pa.RecordBatch]:
        (whole,) = super().window_portions(window, *rows, **more)
        size = int(window.names[0])
        for start in range(0, whole.num_rows, size):
            yield whole.slice(start, size)


NUMBERS = pa.record_batch([pa.array(range(20))], ["a"])


def _numbered(size: int) -> nodes.Window:
    call = WindowCall(AggregateCall("row_number", (), pa.int64()))
    return nodes.Window(nodes.Values(NUMBERS), (), (), (call,), (str(size),))


def _portion(sizes: list[int], constants: list[pa.RecordBatch]) -> WindowPortion[pa.RecordBatch]:
    """Rows 5 to 14 with a constant first and then row numbers, which come by so many."""
    runs = [
        CallRun((len(constants) + i,), _numbered(size), NUMBERS, RestOfPartition(), 5)
        for i, size in enumerate(sizes)
    ]
    return WindowPortion(NUMBERS.slice(5, 10), 10, 1, runs, list(enumerate(constants)))


@pytest.mark.parametrize("sizes", [[10], [4], [4, 3], [1, 7, 5]])
def test_values_that_come_by_different_portions(sizes: list[int]) -> None:
    """Each is given as soon as those of all calls are there."""
    constant = pa.record_batch([pa.array(["same"], pa.large_string())], ["c"])
    frames = list(_portion(sizes, [constant]).compute(_Cutting()))
    found = pa.Table.from_batches(
        [pa.RecordBatch.from_arrays(one.columns, "abcde"[: one.num_columns]) for one in frames]
    )
    assert found.column(0).to_pylist() == list(range(5, 15))
    assert found.column(1).to_pylist() == ["same"] * 10
    for column in found.columns[2:]:
        assert column.to_pylist() == list(range(6, 16))
    ends = sorted({10, *(end for size in sizes for end in range(size, 10, size))})
    assert [one.num_rows for one in frames] == [end - start for start, end in pairwise([0, *ends])]


def test_constant_texts_come_by_as_many_rows_as_fit() -> None:
    constant = pa.record_batch([pa.array(["x" * 40], pa.large_string())], ["c"])
    with use_string_limits(StringLimits(piece=200)):
        frames = list(_portion([], [constant]).compute(CpuDevice()))
    assert [one.num_rows for one in frames] == [4, 4, 2]
    assert all(set(one.column(1).to_pylist()) == {"x" * 40} for one in frames)


def test_values_are_let_go_of_before_the_next_are_made() -> None:
    device = CpuDevice()
    given: list[weakref.ref[pa.RecordBatch]] = []

    def portions() -> Iterator[pa.RecordBatch]:
        for size in (3, 2):
            assert all(one() is None for one in given)
            batch = pa.record_batch([pa.array(range(size))], ["a"])
            given.append(weakref.ref(batch))
            yield batch
            del batch

    values = large_partition._BufferedValues(device, portions())
    assert values.ready() == 3
    assert values.take(2).num_rows == 2
    assert values.ready() == 1
    assert values.take(1).column(0).to_pylist() == [2]
    assert values.ready() == 2
    assert len(given) == 2


def test_a_portion_asks_before_each_part_of_it_whether_to_go_on() -> None:
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1

    answer = _portion([], [NUMBERS.slice(0, 1)]).compute(CpuDevice())
    with use_cancellation_check(check):
        assert [one.num_rows for one in answer] == [10]
    assert asked == 1
