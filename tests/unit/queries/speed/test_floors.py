"""Floors by a profile and measured rates, and how rates are measured."""

from __future__ import annotations

import pytest

from bamquery.driver.gpu.device import Gpu
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.engine.profiling.scan_profile import ColumnProfile, ScanProfile
from bamquery.queries.speed.floors import Floor, Rates, floor_of
from bamquery.queries.speed.rates import bus_rate, gpu_rate, host_rate, measure_rates
from bamquery.storage.readers.block_reader import ReadCounters
from tests.unit.driver.fake_cuda import FakeCuda


def profile(device: str) -> QueryProfile:
    columns = {
        "read": ColumnProfile("read", "filter", bytes_needed=900, counters=ReadCounters(bytes=400)),
        "kept": ColumnProfile("kept", "output", cached=1, bytes_needed=1000),
    }
    scans = (ScanProfile("scan", columns=columns), ScanProfile("scan", columns={"read": columns["read"]}))
    return QueryProfile(device, OperatorProfile("join", children=scans))


def test_bytes_over_the_rate_of_where_they_lie() -> None:
    assert floor_of(profile("cuda:0"), Rates(1.0, bus=100.0, gpu=1000.0)) == Floor(800, 1000, 8.0 + 1.0)
    assert floor_of(profile("cpu"), Rates(200.0, bus=100.0, gpu=1000.0)).seconds == 4.0 + 1.0


def test_a_processor_keeps_nothing() -> None:
    found = profile("cpu")
    del found.scans[0].columns["kept"]
    assert floor_of(found, Rates(200.0)) == Floor(800, 0, 4.0)


@pytest.mark.parametrize("threads", [1, 3])
def test_rates_of_a_processor(threads: int) -> None:
    assert host_rate(threads, 1 << 16) > 0
    found = measure_rates("cpu", threads)
    assert (found.bus, found.gpu) == (None, None)


def test_rates_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = FakeCuda()
    cuda.install(monkeypatch)
    with Gpu() as gpu:
        assert bus_rate(gpu, 3 << 20) == (3 << 20) / 1.5  # the clock of that GPU always says so
        assert gpu_rate(gpu, 3 << 20) == 2 * (3 << 20) / 1.5  # read and written
    assert cuda.calls.count("cuMemcpyDtoDAsync") == cuda.calls.count("cuMemcpyHtoDAsync") == 5
    assert cuda.calls.count("cuMemHostRegister") == cuda.calls.count("cuMemHostUnregister") == 1
    assert cuda.calls.count("cuMemAlloc") == cuda.calls.count("cuMemFree") == 3
