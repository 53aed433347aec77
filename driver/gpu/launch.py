"""A kernel that runs, and how to wait for it without waiting for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from bamquery.driver.gpu.wait import wait_until
from bamquery.errors import GpuError

if TYPE_CHECKING:
    from bamquery.driver.gpu.device import Gpu


class Launch:
    """One launch of a kernel; made by Gpu.launch(). Any thread may look whether it has ended."""

    def __init__(self, gpu: Gpu, kernel: str, stream: Any, on_end: Callable[[], None] | None) -> None:
        """Note the time on the GPU before the kernel."""
        self._gpu = gpu
        self.kernel: Final = kernel
        self.stream: Final = stream
        self._on_end = on_end
        timed = gpu.cuda.api.CUevent_flags.CU_EVENT_DEFAULT.value
        self._events = [gpu.cuda("make an event", "cuEventCreate", timed) for _ in range(2)]
        self._seconds: float | None = None
        self._failure: GpuError | None = None
        self._lock = threading.Lock()
        gpu.cuda("record an event", "cuEventRecord", self._events[0], stream)

    def record_end(self) -> None:
        """Note the time on the GPU after the kernel."""
        self._gpu.cuda("record an event", "cuEventRecord", self._events[1], self.stream)

    def abandon(self) -> None:
        """Nothing was started."""
        self._end()

    @property
    def done(self) -> bool:
        """Whether the kernel has ended; one look.

        Raises:
            GpuError: it failed; says how.
        """
        with self._lock:
            ends = self._look()
        if ends:
            self._end()
        if self._failure is not None:
            raise self._failure
        return self._seconds is not None

    def _look(self) -> bool:
        """Whether this look is the first to see the end."""
        if self._failure is not None or self._seconds is not None:
            return False
        api = self._gpu.cuda.api
        self._gpu.enter()
        (status,) = api.cuEventQuery(self._events[1])
        if status == api.CUresult.CUDA_ERROR_NOT_READY:
            return False
        if int(status):
            self._failure = GpuError(
                f"{self.kernel} failed: {self._gpu.cuda.explain(status)}; "
                "the GPU takes no more work from this process"
            )
        else:
            elapsed = self._gpu.cuda("read an event", "cuEventElapsedTime", *self._events)
            self._seconds = float(elapsed) / 1e3
        return True

    def wait(self, timeout_s: float) -> float:
        """Wait for the end; returns the seconds that the kernel ran, by the GPU's clock. Ctrl-C works.

        Raises:
            GpuError: it failed, or did not end in time: then it runs on, and what it uses stays allocated.
        """
        if not wait_until(lambda: self.done, timeout_s):
            raise GpuError(
                f"{self.kernel} did not end within {timeout_s:g} s and runs on: wait longer, or give its "
                "commands shorter deadlines; the GPU is free again when this process ends"
            )
        return self._seconds or 0.0

    def _end(self) -> None:
        for event in self._events:
            self._gpu.cuda.quietly("cuEventDestroy", event)
        self._gpu.forget_launch(self)
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end()
