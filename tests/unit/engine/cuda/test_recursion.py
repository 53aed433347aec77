"""Recursive queries on a device other than the CPU: the same rows, in memory and by way of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.device import Device
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.lowering import lower
from bamquery.engine.settings import Settings
from bamquery.plan.expressions import Call, ColumnRef, Literal
from bamquery.plan.nodes import Field, Plan, Project, Recursion, Scan, Union, Values, WorkingTable

ROWS = 300
BATCH = pa.record_batch(
    [
        pa.array([None if i % 7 == 0 else i for i in range(ROWS)], pa.int64()),
        pa.array([None if i % 5 == 0 else f"s{i % 9}" for i in range(ROWS)], pa.large_string()),
    ],
    ["n", "s"],
)
FIELDS = (Field("n", pa.int64()), Field("s", pa.large_string()))


def _further(table: WorkingTable, by: int) -> Plan:
    number, text = (ColumnRef(i, field.name, field.type) for i, field in enumerate(FIELDS))
    small = Call("less", (number, Literal(pa.scalar(2500))), pa.bool_())
    more = Call("add", (number, Literal(pa.scalar(by))), pa.int64())
    return Project(Scan(table, (0, 1), (small,)), (more, text), FIELDS)


def _rows(plan: Plan, device: Device[Any], folder: Path, limit: str) -> tuple[list[tuple[Any, ...]], int]:
    settings = Settings().with_values({"threads": 2, "memory_limit": limit})
    operator = lower(plan, device, settings)
    with ExecutionContext(device, settings, spill_folder=folder) as context:
        context.memory.announce(operator.all_reservations(), 2)
        batches = [device.to_arrow(frame, plan.fields) for frame in operator.frames(context)]
        assert context.memory.peak <= context.memory.limit
    found = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    return sorted(found, key=repr), operator.profile.details.get("spilled", 0)


@pytest.mark.parametrize("distinct", [False, True])
def test_rows_are_the_cpus(device: Device[Any], tmp_path: Path, distinct: bool) -> None:
    table = WorkingTable("t", BATCH.schema)
    step = Union((_further(table, 700), _further(table, 1000)))
    plan = Recursion(Values(BATCH), step, table, distinct)
    wanted, spilled = _rows(plan, CpuDevice(), tmp_path, "1 GB")
    assert spilled == 0
    assert (len(wanted) == len(set(wanted))) == distinct
    rows, spilled = _rows(plan, device, tmp_path, "20 kB")
    assert spilled > 0
    assert rows == wanted
