"""WITH RECURSIVE: limits of memory, steps that are not asked for, and being stopped."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

import bamquery
from bamquery.engine.context import ExecutionContext
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.operators.seen_rows import SeenRows
from bamquery.plan.expressions import ColumnRef
from bamquery.plan.nodes import Field

ENDLESS = "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT n FROM t"


def test_limit_stops_it() -> None:
    with bamquery.connect(device="cpu") as con:
        assert con.sql(f"{ENDLESS} LIMIT 3").fetchall() == [(1,), (2,), (3,)]


@pytest.mark.parametrize("union", ["UNION ALL", "UNION"])
def test_memory_limit(union: str) -> None:
    with bamquery.connect(device="cpu", memory_limit="4MB") as con:
        twice = f"SELECT 1::BIGINT AS n {union} SELECT 2 * n + k FROM t, (VALUES (0), (1)) v(k)"
        with pytest.raises(bamquery.MemoryLimitError, match="WITH RECURSIVE"):
            con.sql(f"WITH RECURSIVE t AS ({twice}) SELECT count(*) FROM t").fetchall()


def test_cancel() -> None:
    with bamquery.connect(device="cpu") as con:
        result = con.sql(f"SELECT count(*) FROM ({ENDLESS})").execute()
        threading.Timer(0.2, result.cancel).start()
        with pytest.raises(bamquery.CancelledError):
            list(result)


def test_the_profile_counts_all_steps() -> None:
    with bamquery.connect(device="cpu") as con:
        rows = con.sql(
            "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 50) FROM t"
        )
        rows.fetchall()
        (found,) = [part for part in rows.profile.root.walk() if part.name == "Recursion"]
        assert found.details["steps"] == 50
        assert [child.rows for child in found.children] == [1, 49]


def test_rows_are_seen_once() -> None:
    device = CpuDevice()
    fields = [Field("a", pa.int32()), Field("b", pa.float64())]
    keys = [ColumnRef(i, field.name, field.type) for i, field in enumerate(fields)]
    nan = float("nan")

    def frame(*rows: tuple[int | None, float | None]) -> pa.RecordBatch:
        columns = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), fields, strict=True)]
        return device.from_arrow(pa.RecordBatch.from_arrays(columns, names=["a", "b"]))

    def values(given: pa.RecordBatch) -> list[str]:
        return [repr(tuple(row.values())) for row in device.to_arrow(given, fields).to_pylist()]

    with ExecutionContext(device) as context, SeenRows(context, keys, fields) as seen:
        first = seen.new(frame((1, nan), (None, 1.0), (1, nan), (2, 0.0)))
        assert values(first) == ["(1, nan)", "(None, 1.0)", "(2, 0.0)"]
        assert values(seen.new(frame((2, -0.0), (None, 1.0), (3, None), (1, nan)))) == ["(3, None)"]
        assert values(seen.new(frame((3, None)))) == []
        for number in range(10, 40):
            assert len(values(seen.new(frame((number, 0.0), (number - 1, 0.0))))) == 1 + (number == 10)
        assert context.memory.used > 0
    assert context.memory.used == 0
