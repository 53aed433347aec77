"""WITH RECURSIVE: steps that are not asked for, and being stopped."""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any

import pyarrow as pa
import pytest

import bamquery
from bamquery.engine.context import ExecutionContext
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.operators.operator import Operator
from bamquery.engine.operators.recursion import Recursion
from bamquery.engine.operators.values import Values
from bamquery.engine.profile import OperatorProfile
from bamquery.engine.sources import WorkingRows
from bamquery.plan.nodes import Field

ENDLESS = "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT n FROM t"


def test_limit_stops_it() -> None:
    with bamquery.connect(device="cpu") as con:
        assert con.sql(f"{ENDLESS} LIMIT 3").fetchall() == [(1,), (2,), (3,)]


def test_cancel() -> None:
    with bamquery.connect(device="cpu") as con:
        result = con.sql(f"SELECT count(*) FROM ({ENDLESS})").run()
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


class Step(Operator[Any]):
    """A row a step, up to a number of steps; notes what it may hold."""

    reservations = 1

    def __init__(self, rooms: list[int]) -> None:
        super().__init__((Field("n", pa.int64()),), (), OperatorProfile("Step"))
        self._rooms = rooms

    def produce(self, context: ExecutionContext[Any]) -> Generator[Any, None, None]:
        """The row."""
        with context.memory.reservation("JOIN") as memory:
            self._rooms.append(memory.room)
            if len(self._rooms) < 5:
                yield context.device.from_arrow(pa.record_batch({"n": pa.array([1])}))


def test_each_step_has_memory_even_where_others_take_what_they_can() -> None:
    rooms: list[int] = []
    first: Values[Any] = Values(pa.record_batch({"n": pa.array([1])}), (Field("n", pa.int64()),))
    rows: WorkingRows[Any] = WorkingRows("t", pa.schema([("n", pa.int64())]))
    recursion: Recursion[Any] = Recursion(first, lambda: Step(rooms), rows, (), first.fields)
    with ExecutionContext(CpuDevice()) as context:
        context.memory.announce(1 + recursion.all_reservations(), 2)
        with context.memory.reservation("ORDER BY") as outside:
            for _ in recursion.frames(context):
                outside.resize(outside.room)
    part = rooms[0]
    assert rooms == [part] * 5
    assert part > 1 << 20
