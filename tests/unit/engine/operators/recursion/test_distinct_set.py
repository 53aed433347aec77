"""Rows told from those that came before, in memory and in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.recursion import distinct_set
from bamquery.engine.operators.recursion.distinct_set import DistinctSet
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.settings import Settings
from bamquery.errors import MemoryLimitError
from bamquery.plan.expressions import ColumnRef
from bamquery.plan.nodes import Field

NUMBER = [Field("n", pa.int64())]
KEY = [ColumnRef(0, "n", pa.int64())]


def _context(folder: Path | None, limit: str) -> ExecutionContext[pa.RecordBatch]:
    settings = Settings().with_values({"threads": 2, "memory_limit": limit})
    return ExecutionContext(CpuDevice(), settings, spill_folder=folder)


def _numbers(values: np.ndarray) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], names=["0"])


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

    with (
        ExecutionContext(device) as context,
        DistinctSet(context, keys, fields, OperatorProfile("Recursion")) as seen,
    ):
        first = seen.add(frame((1, nan), (None, 1.0), (1, nan), (2, 0.0)))
        assert values(first) == ["(1, nan)", "(None, 1.0)", "(2, 0.0)"]
        assert values(seen.add(frame((2, -0.0), (None, 1.0), (3, None), (1, nan)))) == ["(3, None)"]
        assert values(seen.add(frame((3, None)))) == []
        for number in range(10, 40):
            assert len(values(seen.add(frame((number, 0.0), (number - 1, 0.0))))) == 1 + (number == 10)
        assert context.memory.used > 0
    assert context.memory.used == 0


@pytest.mark.parametrize("many", [400, 1 << 20])
@pytest.mark.parametrize("limit", ["20 kB", "60 kB", "1 GB"])
def test_steps_are_as_those_of_a_set(
    tmp_path: Path, limit: str, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small and large steps, with rows of their own twice, of the step before, and of ones long ago."""
    monkeypatch.setattr(distinct_set, "_MANY_ROWS", many)
    random = np.random.default_rng(1)
    profile = OperatorProfile("Recursion")
    known: set[int] = set()
    with _context(tmp_path, limit) as context:
        with DistinctSet(context, KEY, NUMBER, profile) as seen:
            for step in range(20):
                frames = [random.integers(0, 6000, random.integers(1, 700)) for _ in range(step % 4)]
                given = [f.column(0).to_pylist() for f in seen.distinct_frames(map(_numbers, frames))]
                new = [value for values in given for value in values]
                assert len(set(new)) == len(new)
                wanted = {int(value) for frame in frames for value in frame} - known
                assert set(new) == wanted
                known |= wanted
            assert list(tmp_path.iterdir()) == []
        assert context.memory.used == 0
        assert context.memory.peak <= context.memory.limit
    assert (profile.details.get("spilled", 0) > 0) == (limit != "1 GB")


def test_nowhere_to_keep_them() -> None:
    with (
        _context(None, "20 kB") as context,
        DistinctSet(context, KEY, NUMBER, OperatorProfile("Recursion")) as seen,
        pytest.raises(MemoryLimitError, match="WITH RECURSIVE"),
    ):
        list(seen.distinct_frames(_numbers(np.arange(start, start + 100)) for start in range(0, 10_000, 100)))
