"""What a trace notes of calls and of the work they start."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from bamquery.driver.gpu.driver_api import Cuda
from bamquery.driver.gpu.trace import trace_calls
from bamquery.errors import GpuError


class Api:
    """Events are moments of a clock that each call advances by a millisecond."""

    CUevent_flags = SimpleNamespace(CU_EVENT_DEFAULT=SimpleNamespace(value=0))

    def __init__(self) -> None:
        self.now = 0.0
        self.alive = 0
        self.fails = False

    def CUstream(self, handle: int) -> int:
        return handle

    def cuEventCreate(self, flags: int) -> tuple[int, list[float]]:
        self.alive += 1
        return 0, [0.0]

    def cuEventRecord(self, event: list[float], stream: int) -> tuple[int]:
        self.now += 1.0
        event[0] = self.now
        return (0,)

    def cuEventSynchronize(self, event: list[float]) -> tuple[int]:
        return (0,)

    def cuEventElapsedTime(self, first: list[float], second: list[float]) -> tuple[int, float]:
        return 0, second[0] - first[0]

    def cuEventDestroy(self, event: list[float]) -> tuple[int]:
        self.alive -= 1
        return (0,)

    def cuLaunchKernel(self, *arguments: Any) -> tuple[int]:
        return (700 if self.fails else 0,)

    def cuCtxGetCurrent(self) -> tuple[int, str]:
        return 0, "context"

    def cuGetErrorName(self, status: int) -> tuple[int, bytes]:
        return 0, b"CUDA_ERROR_ILLEGAL_ADDRESS"

    cuGetErrorString = cuGetErrorName  # noqa: N815


def launch(cuda: Cuda, stream: int) -> None:
    cuda("launch it", "cuLaunchKernel", 1, 1, 1, 1, 32, 1, 1, 0, stream, 0, 0)


def test_a_trace_tells_streams_apart_and_what_the_host_did() -> None:
    cuda = Cuda(Api())
    with trace_calls(cuda) as trace:
        with trace.span("all"):
            launch(cuda, 7)
            assert cuda("ask", "cuCtxGetCurrent") == "context"
            launch(cuda, 9)
            launch(cuda, 7)
        spans = trace.spans()
    work = [span for span in spans if span.lane != "host"]
    assert [span.lane for span in work] == ["stream 0", "stream 1", "stream 0"]
    assert all(span.end - span.begin == pytest.approx(1e-3) for span in work)
    assert [one.begin < other.begin for one, other in pairwise(work)] == [True, True]
    host = [span.name for span in spans if span.lane == "host"]
    assert host == [
        "cuLaunchKernel: launch it",
        "cuCtxGetCurrent: ask",
        *2 * ["cuLaunchKernel: launch it"],
        "all",
    ]


def test_nothing_stays_behind() -> None:
    api = Api()
    cuda = Cuda(api)
    with trace_calls(cuda) as trace:
        launch(cuda, 7)
        trace.spans()
    assert api.alive == 0
    launch(cuda, 7)
    assert api.alive == 0


def test_errors_are_those_of_the_call() -> None:
    api = Api()
    cuda = Cuda(api)
    api.fails = True
    with trace_calls(cuda) as trace, pytest.raises(GpuError, match="cannot launch it"):
        launch(cuda, 7)
    assert len(trace.spans()) == 2
