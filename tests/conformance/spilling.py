"""Runs of operators that may hold little and keep the rest in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from bamquery.engine.device import Device
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.settings import Settings


def run_spilling(operator: Operator[Any], device: Device[Any], folder: Path, limit: str) -> pa.Table:
    """All rows of an operator, which leaves no file and held no more than it may."""
    settings = Settings().with_values({"threads": 2, "memory_limit": limit})
    with ExecutionContext(device, settings, spill_folder=folder) as context:
        context.memory.announce(operator.all_reservations(), 2)
        batches = [device.to_arrow(frame, operator.fields) for frame in operator.frames(context)]
    assert list(folder.iterdir()) == []
    assert context.memory.used == 0
    assert context.memory.peak <= context.memory.limit
    schema = pa.schema([(field.name, field.type) for field in operator.fields])
    return pa.Table.from_batches(batches, schema)
