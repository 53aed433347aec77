"""What every operator has from its base: measurement, cancellation, endings."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.aggregate.aggregate import Aggregate
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError, MemoryLimitError
from bamquery.plan.expressions import AggregateCall, ColumnRef
from bamquery.plan.nodes import Field
from tests.conformance.harness import Forever

BATCH = pa.record_batch([pa.array(range(1000), pa.int64())], ["a"])


class Slow(Operator[Any]):
    """Passes frames on, after a while."""

    def __init__(self, child: Operator[Any], seconds: float) -> None:
        super().__init__(child.fields, (child,), OperatorProfile("Slow"))
        self._seconds = seconds

    def produce(self, context: ExecutionContext[Any]) -> Generator[Any, None, None]:
        """The child's frames."""
        for frame in self.children[0].frames(context):
            time.sleep(self._seconds)
            yield frame


def test_time_belongs_to_the_operator_that_spends_it() -> None:
    inner = Slow(Forever(BATCH), 0.02)
    outer = Slow(inner, 0.001)
    with ExecutionContext(CpuDevice()) as context:
        frames = outer.frames(context)
        for _ in range(5):
            next(frames)
        frames.close()
    assert inner.profile.seconds > 0.1 > outer.profile.seconds > 0.005
    assert (inner.profile.rows, outer.profile.rows) == (5000, 5000)
    assert outer.profile.children == (inner.profile,)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_cancelled_aggregate_stops(threads: int) -> None:
    """The rows never end; the query does."""
    with ExecutionContext(CpuDevice(), Settings(threads=threads)) as context:

        def cancel(given: int) -> None:
            if given == 20:
                context.cancelled.set()

        child = Forever(BATCH, cancel)
        total = AggregateCall("sum", (ColumnRef(0, "a", pa.int64()),), pa.decimal128(38, 0))
        operator = Aggregate(child, (), (total,), (Field("sum", total.type),))
        with pytest.raises(CancelledError):
            list(operator.frames(context))
        assert child.closed
        assert child.frames_given < 30


def test_an_interrupt_closes_all_that_is_below() -> None:
    def interrupt(given: int) -> None:
        if given == 5:
            raise KeyboardInterrupt

    child = Forever(BATCH, interrupt)
    count = AggregateCall("count_star", (), pa.int64())
    operator = Aggregate(child, (), (count,), (Field("count", count.type),))
    with pytest.raises(KeyboardInterrupt), ExecutionContext(CpuDevice()) as context:
        list(operator.frames(context))
    assert child.closed


def test_groups_beyond_the_memory_limit_are_an_error() -> None:
    start = 0

    class New(Forever):
        def produce(self, context: ExecutionContext[Any]) -> Generator[Any, None, None]:
            nonlocal start
            while True:
                yield pa.record_batch([pa.array(range(start, start + 100_000), pa.int64())], ["a"])
                start += 100_000

    key = ColumnRef(0, "a", pa.int64())
    operator = Aggregate(New(BATCH), (key,), (), (Field("a", pa.int64()),))
    with (
        ExecutionContext(CpuDevice(), Settings().with_value("memory_limit", "20MB")) as context,
        pytest.raises(MemoryLimitError, match=r"GROUP BY needs .* memory_limit is 19\.1 MiB"),
    ):
        list(operator.frames(context))
    assert context.memory.used == 0
    assert start < 5_000_000
