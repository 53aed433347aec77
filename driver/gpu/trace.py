"""What a GPU and its host did when: every driver call of this process, and on the GPU what it started.

Tracing costs two events a call, so it is for looking, not for timing whole queries.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from bamquery.driver.gpu.driver_api import Cuda

_STREAM_OF: Final = {
    "cuLaunchKernel": 8,
    "cuMemcpyHtoDAsync": 3,
    "cuMemcpyDtoHAsync": 3,
    "cuMemcpyDtoDAsync": 3,
    "cuMemsetD8Async": 3,
}
"""Calls that start work, and which argument is their stream."""


@dataclass(frozen=True)
class Span:
    """Something that took time.

    Attributes:
        lane: `host`, or `stream 0`, `stream 1`, … in the order of first use.
        name: what was tried, in the words of the call.
        begin: seconds since the trace began.
        end: the same; on a stream as its events tell.
    """

    lane: str
    name: str
    begin: float
    end: float


class GpuTrace:
    """Takes the place of a `Cuda` within `trace_calls`; one at a time."""

    def __init__(self, cuda: Cuda) -> None:
        self._api = cuda.api
        self._plain = cuda.call
        self._streams: dict[int, int] = {}
        self._host: list[tuple[str, float, float]] = []
        self._work: list[tuple[str, int, Any, Any]] = []
        self._lock = threading.Lock()
        self._timed = self._api.CUevent_flags.CU_EVENT_DEFAULT.value
        self._first = self._event(self._api.CUstream(0))
        (status,) = self._api.cuEventSynchronize(self._first)
        assert not int(status)
        self._began = time.perf_counter()

    def call(self, action: str, function: str, *arguments: Any) -> Any:
        """As `Cuda.__call__`, noting when."""
        where = _STREAM_OF.get(function)
        before = None if where is None else self._event(arguments[where])
        begin = time.perf_counter()
        try:
            return self._plain(action, function, *arguments)
        finally:
            end = time.perf_counter()
            with self._lock:
                self._host.append((f"{function}: {action}", begin - self._began, end - self._began))
                if where is not None:
                    stream = arguments[where]
                    lane = self._streams.setdefault(int(stream), len(self._streams))
                    self._work.append((action, lane, before, self._event(stream)))

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Note what the host does meanwhile."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            end = time.perf_counter()
            with self._lock:
                self._host.append((name, begin - self._began, end - self._began))

    def spans(self) -> list[Span]:
        """All that happened, once the GPU has ended it; call it once."""
        found = [Span("host", *call) for call in self._host]
        for name, lane, before, after in self._work:
            times = []
            for event in (before, after):
                self._api.cuEventSynchronize(event)
                status, milliseconds = self._api.cuEventElapsedTime(self._first, event)
                times.append(float(milliseconds) / 1e3 if not int(status) else float("nan"))
                self._api.cuEventDestroy(event)
            found.append(Span(f"stream {lane}", name, *times))
        self._work.clear()
        self._api.cuEventDestroy(self._first)
        return found

    def _event(self, stream: Any) -> Any:
        _, event = self._api.cuEventCreate(self._timed)
        self._api.cuEventRecord(event, stream)
        return event


@contextmanager
def trace_calls(cuda: Cuda) -> Iterator[GpuTrace]:
    """Trace all calls that go through `cuda`."""
    trace = GpuTrace(cuda)
    plain, cuda.call = cuda.call, trace.call  # type: ignore[method-assign]
    try:
        yield trace
    finally:
        cuda.call = plain  # type: ignore[method-assign]
