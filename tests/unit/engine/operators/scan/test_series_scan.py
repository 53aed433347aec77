"""Series are computed as they are asked for: nothing is held, and few are computed for few rows."""

from __future__ import annotations

import pyarrow as pa

import bamquery
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.scan.series_scan import SeriesScan
from bamquery.engine.settings import Settings
from bamquery.plan.nodes import Scan
from bamquery.plan.series import Series


def _numbers(rows: int) -> Series:
    return Series("range", 0, 1, rows, pa.int64())


def test_no_chunk_is_large_and_all_values_come_in_order() -> None:
    rows = 2_500_000
    operator: SeriesScan[pa.RecordBatch] = SeriesScan(Scan(_numbers(rows), (0,)), _numbers(rows))
    following = 0
    with ExecutionContext(CpuDevice(), Settings().with_values({"memory_limit": "100 MB"})) as context:
        for frame in operator.frames(context):
            assert frame.num_rows <= 1 << 20
            assert frame.column(0)[0].as_py() == following
            following += frame.num_rows
        assert context.memory.peak == 0
    assert following == rows


def test_a_limit_waits_for_no_more_than_a_few_chunks() -> None:
    with bamquery.connect(device="cpu") as con:
        result = con.sql("FROM range(1000000000000) LIMIT 3")
        assert result.fetchall() == [(0,), (1,), (2,)]


def test_explain_names_the_function() -> None:
    with bamquery.connect(device="cpu") as con:
        assert "Series" in con.sql("FROM range(5) WHERE range > 2").explain()
