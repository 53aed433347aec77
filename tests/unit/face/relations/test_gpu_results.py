"""Answers that stay on a GPU, asked for where there is none."""

from __future__ import annotations

import pyarrow as pa
import pytest

import bamquery
from bamquery.engine.cpu.device import CpuDevice
from bamquery.errors import BamQueryError
from bamquery.plan.nodes import Field
from bamquery.session.result import Result


@pytest.fixture
def relation() -> bamquery.Relation:
    connection = bamquery.connect(device="cpu")
    connection.load("t", pa.table({"x": pa.array(range(3000), pa.int64())}))
    return connection.sql("SELECT x FROM t WHERE x >= 10 ORDER BY x")


@pytest.mark.parametrize("method", ["to_cudf", "to_cupy"])
def test_on_the_cpu_it_says_what_to_take_instead(relation: bamquery.Relation, method: str) -> None:
    message = rf"{method}\(\) needs a query that runs on a GPU, and this one runs on cpu.*to_arrow\(\)"
    with pytest.raises(BamQueryError, match=message):
        getattr(relation, method)()


def test_auto_says_why_it_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    notes = ("device auto: cpu, because there is no GPU in this test",)
    monkeypatch.setattr("bamquery.session.session.open_device", lambda *given, programs: (CpuDevice(), notes))
    message = "because there is no GPU in this test"
    with bamquery.connect(device="cpu") as connection, pytest.raises(BamQueryError, match=message):
        connection.sql("SELECT 1").to_cudf()


def _device_frame(result: Result) -> pa.RecordBatch:
    device, frame = result.device_frame()
    assert device.name == "cpu"
    return device.to_arrow(frame, [Field("x", pa.int64())])


def test_all_rows_as_one_frame_of_the_device(relation: bamquery.Relation) -> None:
    with relation.run() as result:
        assert _device_frame(result).column(0).to_pylist() == list(range(10, 3000))
        assert result.profile.seconds > 0
        assert list(result) == []


def test_no_frame_after_batches(relation: bamquery.Relation) -> None:
    with relation.run() as result:
        next(result)
        with pytest.raises(BamQueryError, match="have been taken"):
            result.device_frame()
    with relation.run() as result:
        _device_frame(result)
        with pytest.raises(BamQueryError, match="have been taken"):
            result.device_frame()


def test_no_rows_are_a_frame_too(relation: bamquery.Relation) -> None:
    with relation.filter("x < 0").run() as result:
        assert _device_frame(result).num_rows == 0


def test_a_cancelled_result_gives_no_frame(relation: bamquery.Relation) -> None:
    with relation.run() as result:
        result.cancel()
        with pytest.raises(bamquery.CancelledError):
            result.device_frame()
