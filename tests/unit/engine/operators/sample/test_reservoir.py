"""The rows with the least of random keys, in memory and in files."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.sample import reservoir
from bamquery.engine.operators.sample.reservoir import Reservoir
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.settings import Settings
from bamquery.errors import MemoryLimitError
from bamquery.plan.nodes import Field

FIELDS = [Field("n", pa.int64()), Field("text", pa.large_string())]
ROWS = 12_000


def _context(folder: Path | None, limit: str) -> ExecutionContext[pa.RecordBatch]:
    settings = Settings().with_values({"memory_limit": limit})
    return ExecutionContext(CpuDevice(), settings, spill_folder=folder)


def _frame(rows: np.ndarray) -> pa.RecordBatch:
    texts = pa.array([f"text {n}" for n in rows], pa.large_string())
    return pa.RecordBatch.from_arrays([pa.array(rows, pa.int64()), texts], names=["0", "1"])


def _drawn(context: ExecutionContext[pa.RecordBatch], count: int, keys: np.ndarray) -> list[int]:
    profile = OperatorProfile("Sample")
    found: list[int] = []
    with (
        context.memory.reservation("sampling") as memory,
        closing(Reservoir(context, count, FIELDS, memory, profile)) as rows,
    ):
        for start in range(0, len(keys), 250):
            chosen = start + np.flatnonzero(keys[start : start + 250] < rows.limit)
            if len(chosen):
                rows.add(_frame(chosen), keys[chosen])
        for frame in rows.frames():
            numbers = frame.column(0).to_pylist()
            assert frame.column(1).to_pylist() == [f"text {n}" for n in numbers]
            found += numbers
    assert context.memory.used == 0
    assert context.memory.peak <= context.memory.limit
    assert ("spilled" in profile.details) == (context.memory.limit < 1 << 20)
    return found


@pytest.mark.parametrize("limit", ["30 kB", "1 GB"])
@pytest.mark.parametrize("count", [1000, 3000, ROWS - 1, ROWS, ROWS + 1])
@pytest.mark.parametrize("ascending", [False, True])
def test_the_least_keys(
    tmp_path: Path, limit: str, count: int, ascending: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The smaller counts are passed twice by the rows put in, more than once where keys are in no order."""
    monkeypatch.setattr(reservoir, "_FEWEST_HELD", 10)
    keys = np.random.default_rng(5).random(ROWS)
    if ascending:
        keys.sort()
    with _context(tmp_path, limit) as context:
        found = _drawn(context, count, keys)
        assert list(tmp_path.iterdir()) == []
    assert found == sorted(np.argsort(keys)[:count].tolist())


@pytest.mark.parametrize("count", [1000, 3001])
def test_equal_keys(tmp_path: Path, count: int) -> None:
    """Of rows with one key the first ones are drawn."""
    keys = np.random.default_rng(5).integers(0, 50, ROWS) / 64
    with _context(tmp_path, "30 kB") as context:
        assert _drawn(context, count, keys) == sorted(np.argsort(keys, kind="stable")[:count].tolist())


def test_nowhere_to_keep_them() -> None:
    keys = np.random.default_rng(5).random(ROWS)
    with _context(None, "30 kB") as context, pytest.raises(MemoryLimitError, match="sampling needs"):
        _drawn(context, 3000, keys)
