"""Rows that several operators read: computed once, each reader at its own pace, in memory or in a file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.device import Device
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.shared_rows import SharedRows
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError, MemoryLimitError
from tests.conformance.harness import Forever, Rows, assert_same, random_table
from tests.strategies import ALL_TYPES

TABLE = random_table(ALL_TYPES, 3000)
LITTLE = "150KB"
"""Less than the table takes, more than a chunk of it."""


def _context(device: Device[Any], folder: Path | None = None, limit: str = "1GB") -> ExecutionContext[Any]:
    settings = Settings().with_values({"threads": 2, "memory_limit": limit})
    return ExecutionContext(device, settings, spill_folder=folder)


def _table(device: Device[Any], frames: list[Any], schema: pa.Schema) -> pa.Table:
    fields = [(field.name, field.type) for field in schema]
    found = [device.to_arrow(frame, Rows(TABLE).fields) for frame in frames]
    return pa.Table.from_batches(found, pa.schema(fields))


@pytest.fixture(params=["1GB", LITTLE])
def limit(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_readers_go_on_at_their_own_pace(device: Device[Any], tmp_path: Path, limit: str) -> None:
    source = Rows(TABLE, (100,))
    shared: SharedRows[Any] = SharedRows(source, 1)
    scans = [shared.scan() for _ in range(3)]
    with _context(device, tmp_path, limit) as context:
        first, second, third = (scan.frames(context) for scan in scans)
        found: list[list[Any]] = [[next(first)], [], []]
        for pair in zip_longest(second, third):  # side by side, while the first one waits
            for place, frame in enumerate(pair, 1):
                found[place].append(frame)
        found[0] += first
        assert context.memory.used == 0
        for frames in found:
            assert_same(_table(device, frames, TABLE.schema), TABLE)
    assert source.frames_given == 30
    assert list(tmp_path.iterdir()) == []
    spilled = [scan.profile.details.get("spilled") for scan in scans]
    assert [value is not None for value in spilled] == [limit == LITTLE, False, False]


def test_what_a_later_reader_computes_is_timed_once(device: Device[Any]) -> None:
    shared: SharedRows[Any] = SharedRows(Rows(TABLE), 1)
    first, second = shared.scan(), shared.scan()
    with _context(device) as context:
        for _ in second.frames(context):
            pass
        below = shared.operator._total_seconds
        assert below > 0
        assert second.profile.seconds == pytest.approx(second._total_seconds - below)
        for _ in first.frames(context):
            pass
    assert first.children == (shared.operator,)
    assert second.children == ()


@pytest.mark.parametrize("begun", [False, True])
def test_nothing_is_kept_of_readers_that_stop_early(
    device: Device[Any], tmp_path: Path, limit: str, begun: bool
) -> None:
    shared: SharedRows[Any] = SharedRows(Rows(TABLE), 1)
    first, second = shared.scan(), shared.scan()
    with _context(device, tmp_path, limit) as context:
        reader: Iterator[Any] = first.frames(context)
        next(reader)
        other = second.frames(context)
        if begun:
            next(other)
            other.close()
        reader.close()
    assert context.memory.used == 0
    assert shared._file is None or shared._file._file is None
    assert not shared._held


def test_without_a_folder_the_error_names_the_setting(device: Device[Any]) -> None:
    scan = SharedRows(Rows(TABLE), 1).scan()
    with (
        _context(device, None, LITTLE) as context,
        pytest.raises(MemoryLimitError, match=r"WITH.*memory_limit"),
    ):
        list(scan.frames(context))
    assert context.memory.used == 0


def test_filling_stops_when_the_query_is_cancelled(device: Device[Any]) -> None:
    source = Forever(TABLE.slice(0, 10).combine_chunks().to_batches()[0])
    scan = SharedRows(source, 1).scan()
    with _context(device) as context:
        threading.Timer(0.1, context.cancelled.set).start()
        with pytest.raises(CancelledError):
            next(scan.frames(context))
    assert source.closed
    assert context.memory.used == 0
