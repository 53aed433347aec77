"""Samples on a device other than the CPU: rows of all columns stay together, and are the CPU's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.device import Device
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.lowering import lower
from bamquery.engine.settings import Settings
from bamquery.plan.nodes import Sample, Values

BATCH = pa.record_batch(
    [pa.array(range(5000)), pa.array([f"s{i}" for i in range(5000)], pa.large_string())], ["i", "s"]
)


def _rows(sample: Sample, device: Device[Any]) -> list[dict[str, Any]]:
    operator = lower(sample, device, Settings())
    with ExecutionContext(device) as context:
        batches = [device.to_arrow(frame, sample.fields) for frame in operator.frames(context)]
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize(
    "sample",
    [
        Sample(Values(BATCH), count=100, seed=3),
        Sample(Values(BATCH), percent=10.0, seed=3),
        Sample(Values(BATCH), percent=50.0, seed=3, by_run=True),
        Sample(Values(BATCH), percent=0.0),
        Sample(Values(BATCH), count=10_000),
    ],
)
def test_a_sample_is_the_cpus(sample: Sample, device: Device[Any]) -> None:
    rows = _rows(sample, device)
    assert rows == _rows(sample, CpuDevice())
    assert all(row["s"] == f"s{row['i']}" for row in rows)
