"""The rows of a step: put in, read by several, let go of; in memory and in a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.recursion.recursive_table import RecursiveTable
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError, MemoryLimitError
from bamquery.plan.nodes import Field

FIELDS = [Field("n", pa.int64()), Field("word", pa.dictionary(pa.int32(), pa.large_string()))]


def _context(folder: Path | None, limit: str) -> ExecutionContext[pa.RecordBatch]:
    settings = Settings().with_values({"memory_limit": limit})
    return ExecutionContext(CpuDevice(), settings, spill_folder=folder)


def _frame(start: int, stop: int) -> pa.RecordBatch:
    words = pa.array([f"word {n % 3}" for n in range(start, stop)], pa.large_string()).dictionary_encode()
    return pa.RecordBatch.from_arrays([pa.array(range(start, stop), pa.int64()), words], names=["0", "1"])


def _numbers(frames: Iterable[pa.RecordBatch]) -> list[int]:
    found = []
    for frame in frames:
        rows = zip(*(column.to_pylist() for column in frame.columns), strict=True)
        assert all(word == f"word {n % 3}" for n, word in rows)
        found += frame.column(0).to_pylist()
    return found


@pytest.mark.parametrize(("limit", "in_a_file"), [("8 kB", True), ("1 GB", False)])
def test_rows_are_read_by_several(tmp_path: Path, limit: str, in_a_file: bool) -> None:
    profile = OperatorProfile("Recursion")
    with _context(tmp_path, limit) as context, RecursiveTable(context, FIELDS, profile) as rows:
        for stop in (1000, 300, 2):  # what was there before is let go of
            rows.clear()
            assert (rows.rows, context.memory.used) == (0, 0)
            for start in range(0, stop, 20):
                rows.add(_frame(start, min(start + 20, stop)))
            assert rows.rows == stop
            one, other = rows.frames(), rows.frames()
            first = _numbers([next(one)])
            assert _numbers(other) == list(range(stop))
            assert first + _numbers(one) == list(range(stop))
            assert (context.memory.used == 0) == (in_a_file and stop == 1000)
            assert list(tmp_path.iterdir()) == []
    assert context.memory.used == 0
    assert ("spilled" in profile.details) == in_a_file
    assert context.memory.peak <= context.memory.limit


def test_small_frames_are_joined(tmp_path: Path) -> None:
    with _context(tmp_path, "1 GB") as context, RecursiveTable(context, FIELDS, OperatorProfile("R")) as rows:
        for start in range(100):
            rows.add(_frame(start, start + 1))
        assert [frame.num_rows for frame in rows.frames()] == [100]
        rows.add(_frame(100, 101))
        assert _numbers(rows.frames()) == list(range(101))


def test_nowhere_to_keep_them() -> None:
    with (
        _context(None, "8 kB") as context,
        RecursiveTable(context, FIELDS, OperatorProfile("Recursion")) as rows,
        pytest.raises(MemoryLimitError, match="WITH RECURSIVE needs"),
    ):
        rows.add(_frame(0, 1000))


def test_reading_stops_when_the_query_is_cancelled(tmp_path: Path) -> None:
    with _context(tmp_path, "8 kB") as context, RecursiveTable(context, FIELDS, OperatorProfile("R")) as rows:
        rows.add(_frame(0, 1000))
        frames = rows.frames()
        next(frames)
        context.cancelled.set()
        with pytest.raises(CancelledError):
            next(frames)
