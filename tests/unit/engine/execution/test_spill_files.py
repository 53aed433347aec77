"""Rows in files without a name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.spill_files import SpillFile
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.errors import StorageError
from bamquery.plan.nodes import Field
from tests.devices.frames import batch_of, fields_of
from tests.values import plain, same


def test_frames_come_back_in_order(tmp_path: Path) -> None:
    batch = batch_of(100)
    with SpillFile(CpuDevice(), tmp_path, fields_of(batch), OperatorProfile("Sort")) as file:
        for start, length in ((0, 40), (40, 0), (40, 60)):
            file.write(batch.slice(start, length))
        assert file.rows == 100
        assert list(tmp_path.iterdir()) == []
        first, second = file.frames()
    assert (first.num_rows, second.num_rows) == (40, 60)
    for given, *frames in zip(batch.columns, first.columns, second.columns, strict=True):
        assert all(not pa.types.is_dictionary(frame.type) for frame in frames)
        back = [value for frame in frames for value in plain(frame)]
        assert all(same(a, b) for a, b in zip(back, plain(given), strict=True))


def test_nothing_written(tmp_path: Path) -> None:
    with SpillFile(CpuDevice(), tmp_path, [Field("a", pa.int64())], OperatorProfile("Sort")) as file:
        assert list(file.frames()) == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    batch = pa.record_batch({"a": pa.array([1])})
    with (
        SpillFile(CpuDevice(), tmp_path / "gone", [Field("a", pa.int64())], OperatorProfile("Sort")) as file,
        pytest.raises(StorageError, match=r"cannot be kept in .*gone"),
    ):
        file.write(batch)


def test_several_readers_and_a_writer(tmp_path: Path) -> None:
    """Each reader has a place of its own, and sees what was there when it began."""

    def batch(*values: int) -> pa.RecordBatch:
        return pa.record_batch({"a": pa.array(values, pa.int64())})

    def values(frames: Iterable[pa.RecordBatch]) -> list[int]:
        return [value for frame in frames for value in frame.column(0).to_pylist()]

    with SpillFile(CpuDevice(), tmp_path, [Field("a", pa.int64())], OperatorProfile("Join")) as file:
        file.write(batch(1, 2))
        file.write(batch(3))
        one, other = file.frames(), file.frames()
        assert values([next(one)]) == values([next(other)]) == [1, 2]
        file.write(batch(4, 5, 6))
        assert values(one) == [3]
        assert values(file.frames()) == [1, 2, 3, 4, 5, 6]
        file.write(batch(7))
        assert values(other) == [3]
        assert values(file.frames()) == [1, 2, 3, 4, 5, 6, 7]
