"""Memory of the portions of a large partition: those in work count, and are waited for."""

from __future__ import annotations

from collections import deque

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.window.large_partition import LargePartition
from bamquery.engine.profiling.query_profile import OperatorProfile
from bamquery.engine.settings import Settings
from bamquery.errors import MemoryLimitError
from bamquery.plan import nodes


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
