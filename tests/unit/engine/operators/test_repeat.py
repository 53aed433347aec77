"""Rows given several times: in portions that are small for the memory limit, of which none is held."""

from __future__ import annotations

import pyarrow as pa

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.repeat import Repeat
from bamquery.engine.settings import Settings
from bamquery.plan.expressions import ColumnRef
from tests.conformance.harness import Rows

TEXT = "x" * 1000


def test_portions_are_small_for_the_limit() -> None:
    table = pa.table(
        {
            "text": pa.array([f"{i}{TEXT}" for i in range(4)], pa.large_string()),
            "count": pa.array([3000, None, 0, 2000], pa.int64()),
        }
    )
    operator = Repeat(Rows(table, [4]), ColumnRef(1, "count", pa.int64()))
    given = []
    with ExecutionContext(CpuDevice(), Settings().with_values({"memory_limit": "10 MB"})) as context:
        for frame in operator.frames(context):
            assert frame.nbytes < 200_000
            given += frame.column(0).to_pylist()
        assert context.memory.peak == 0
    assert given == [f"0{TEXT}"] * 3000 + [f"3{TEXT}"] * 2000
