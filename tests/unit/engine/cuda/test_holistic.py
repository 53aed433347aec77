"""Values of groups that are more than memory may hold, on the cuda device over a stand-in for libcudf."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.device import Device
from bamquery.engine.operators.aggregate import counted_values as gathered_values
from bamquery.engine.operators.aggregate.aggregate import Aggregate
from bamquery.engine.operators.base import frame_sizing as framing
from bamquery.plan.expressions import AggregateCall, Literal, SortKey
from bamquery.plan.nodes import Field
from tests.conformance.harness import Rows, assert_same, random_column, reference, run
from tests.conformance.spilling import run_spilling

ROWS = 2000
DOUBLE = pa.float64()


def test_answers_are_the_cpus(device: Device[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "GATHERED_ROWS", 500 // device.task_size)
    monkeypatch.setattr(gathered_values, "_LEAST_ROWS", 2000)
    monkeypatch.setattr(gathered_values, "GATHERED_ROWS", 2000)
    doubles = [n / 8 for n in range(-400, 400)] + [float("nan"), float("inf")]
    table = pa.table(
        {
            "k": pa.array([n % 3 for n in range(ROWS)]),
            "x": random_column(DOUBLE, ROWS, 1, doubles),
            "s": random_column(pa.large_string(), ROWS, 2, [f"text {n}" for n in range(500)]),
            "d": random_column(pa.decimal128(9, 2), ROWS, 3),
            "at": random_column(pa.timestamp("us"), ROWS, 4),
            "row": pa.array(range(ROWS), pa.int64()),
        }
    )
    k, x, s, d, at, row = (reference(table, name) for name in table.column_names)
    third = Literal(pa.scalar(-0.3, DOUBLE))
    calls = [
        AggregateCall("quantile_cont", (x,), x.type, parameter=third),
        AggregateCall("quantile_cont", (d,), d.type, parameter=third),
        AggregateCall("quantile_cont", (at,), at.type, parameter=third),
        AggregateCall("quantile_disc", (s,), s.type, parameter=third),
        AggregateCall("mad", (d,), d.type),
        AggregateCall("mode", (s,), s.type),
        AggregateCall("mode", (x,), x.type, order=(SortKey(s, descending=True), SortKey(row))),
        AggregateCall("entropy", (s,), DOUBLE),
        AggregateCall("count_star", (), pa.int64()),
        AggregateCall("max", (s,), s.type),
    ]
    fields = (Field("k", k.type), *(Field(f"c{i}", call.type) for i, call in enumerate(calls)))
    expected = run(Aggregate(Rows(table), [k], calls, fields), CpuDevice())
    operator = Aggregate(Rows(table, [500]), [k], calls, fields)
    ours = run_spilling(operator, device, tmp_path, "200 KB")
    assert operator.profile.details["runs"] > 1
    assert_same(ours.sort_by("k"), expected.sort_by("k"), 1e-9)
