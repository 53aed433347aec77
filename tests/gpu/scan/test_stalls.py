"""What a query waits for stops: it ends with an error, and the process goes on, as does the next query."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.driver.gpu import wait as gpu_wait
from bamquery.engine.execution import detached_steps as steps_apart
from bamquery.errors import BamQueryError, CancelledError, GpuError, NvmeError

ROWS = 400_000
QUERIES = {
    "a scan": "SELECT sum(b), count(*) FROM t WHERE a < 0.1",
    "a filter on texts": "SELECT count(*) FROM t WHERE s LIKE '%7%' AND a < 0.5",
    "groups": "SELECT k, sum(b) FROM t GROUP BY k ORDER BY k",
    "a join": "SELECT count(*) FROM t x JOIN t y ON x.k = y.k WHERE x.a < 0.001 AND y.a < 0.001",
    "a window": "SELECT sum(w) FROM (SELECT row_number() OVER (PARTITION BY k ORDER BY a) w FROM t)",
}


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("pylibcudf")
    random = np.random.default_rng(0)
    table = pa.table(
        {
            "a": random.random(ROWS),
            "b": random.integers(0, 1000, ROWS),
            "k": random.integers(0, 50, ROWS),
            "s": [str(number) for number in range(ROWS)],
        }
    )
    with bamquery.connect(str(tmp_path_factory.mktemp("stalls") / "db"), device="cuda:0") as opened:
        opened.load("t", table)
        yield opened


@pytest.fixture(params=list(QUERIES))
def sql(request: pytest.FixtureRequest, connection: Any) -> str:
    found = QUERIES[request.param]
    connection.sql(found).fetchall()  # kernels are compiled, streams are made
    return found


@pytest.fixture
def resources(connection: Any) -> Any:
    from bamquery.engine.cuda.scan.resources.scan_resources import resources_of
    from bamquery.engine.cuda.session import open_session

    return resources_of(open_session(0))


@contextmanager
def stalled(resources: Any, streams: list[Any]) -> Iterator[Callable[[], None]]:
    """Streams that do nothing until the result is called, or the block ends."""
    gpu = resources._gpu
    memory = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), np.uint32)
    address = int(memory.ctypes.data)
    kernel = gpu.load(Path(__file__).parent / "hold_stream.cu", "hold_stream")
    pinned = gpu.pin(memory, address, mmap.PAGESIZE)

    def release() -> None:
        memory[0] = 1

    launches = [gpu.launch(kernel, pinned.address, grid=1, block=1, stream=stream) for stream in streams]
    try:
        yield release
    finally:
        release()
        for launch in launches:
            launch.wait(30)
        pinned.close()


def idle_streams(resources: Any) -> list[Any]:
    """Those that the next scan will load by."""
    return [stream for found in resources._streams.values() for stream in found]


def which_streams(resources: Any, which: str) -> list[Any]:
    from bamquery.engine.cuda.session import open_session

    return [open_session(0).driver_stream] if which == "operators" else idle_streams(resources)


@pytest.mark.parametrize("which", ["operators", "copies"])
def test_a_stream_that_stands_still_is_an_error(
    connection: Any, resources: Any, sql: str, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = connection.sql(sql).fetchall()
    monkeypatch.setattr(gpu_wait, "STREAM_DEADLINE_S", 0.5)
    monkeypatch.setattr(steps_apart, "STEP_DEADLINE_S", 1.5)
    with stalled(resources, which_streams(resources, which)):
        with pytest.raises(GpuError, match=r"did not end|have not come back"):
            connection.sql(sql).fetchall()
        with pytest.raises(BamQueryError):  # the next one finds it so, and does not hang either
            connection.sql(sql).fetchall()
    monkeypatch.undo()
    assert connection.sql(sql).fetchall() == expected


@pytest.mark.parametrize("which", ["operators", "copies"])
def test_a_query_behind_a_stream_that_stands_still_can_be_interrupted(
    connection: Any, resources: Any, sql: str, which: str
) -> None:
    expected = connection.sql(sql).fetchall()
    with stalled(resources, which_streams(resources, which)):
        timer = threading.Timer(0.3, connection.interrupt)
        timer.start()
        with pytest.raises(CancelledError):
            connection.sql(sql).fetchall()
        timer.join()
    assert connection.sql(sql).fetchall() == expected


def test_a_controller_that_stops_is_an_error(
    connection: Any, resources: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bamquery.engine.cuda.scan.reads import fetch_blocks as fetching

    sql = QUERIES["a scan"]
    connection.sql("SET strategy = 'blocks'")
    connection.sql("SET reader = 'queues'")
    expected = connection.sql(sql).fetchall()
    monkeypatch.setattr(fetching, "DEADLINE_NS", 300_000_000)
    stopped = list(resources._rings.values())
    for rings in stopped:
        rings.controller.stop()
    try:
        with pytest.raises(NvmeError) as caught:
            connection.sql(sql).fetchall()
    finally:
        connection.sql("SET strategy = 'auto'")
    assert caught.value.sct == 7
    monkeypatch.undo()
    connection.sql("SET strategy = 'blocks'")
    connection.sql("SET reader = 'queues'")
    assert connection.sql(sql).fetchall() == expected
    connection.sql("SET strategy = 'auto'")
    assert any(rings not in stopped for rings in resources._rings.values())


def test_nothing_is_kept_of_queries_that_stood_still(
    connection: Any, resources: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams, pins and what was parked come back once the GPU goes on."""
    sql = QUERIES["a scan"]
    connection.sql(sql).fetchall()

    def held() -> tuple[int, ...]:
        return len(idle_streams(resources)), resources.maps.bytes, len(resources._parked)

    before = held()
    monkeypatch.setattr(gpu_wait, "STREAM_DEADLINE_S", 0.2)
    for _ in range(3):
        with stalled(resources, idle_streams(resources)), pytest.raises(GpuError):
            connection.sql(sql).fetchall()
        connection.sql(sql).fetchall()
    after = held()
    assert after[0] >= before[0]
    assert after[1:] == before[1:]
