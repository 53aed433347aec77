"""Events of a GPU that are used again: making and destroying one takes as long as what it is for."""

from __future__ import annotations

from typing import Any

from bamquery.driver.gpu.driver_api import Cuda


class EventPool:
    """Thread-safe.

    An event that was given back may be recorded anew at once: whoever waits for it on the GPU waits for what
    it stood for then (CUDA driver API, cuStreamWaitEvent).
    """

    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        self._free: dict[bool, list[Any]] = {False: [], True: []}

    def record(self, stream: Any, *, timed: bool = False) -> Any:
        """An event behind what the stream was given before; give it back. `timed`: with the GPU's time.

        Raises:
            GpuError: it cannot be made or recorded.
        """
        try:
            event = self._free[timed].pop()
        except IndexError:
            flags = self._cuda.api.CUevent_flags
            flag = flags.CU_EVENT_DEFAULT if timed else flags.CU_EVENT_DISABLE_TIMING
            event = self._cuda("make an event", "cuEventCreate", flag.value)
        try:
            self._cuda("record an event", "cuEventRecord", event, stream)
        except BaseException:
            self.give_back(event, timed=timed)
            raise
        return event

    def give_back(self, event: Any, *, timed: bool = False) -> None:
        """Nobody on this side asks for it any more."""
        self._free[timed].append(event)

    def close(self) -> None:
        """Destroy those that nobody has; the thread has entered the GPU's context."""
        for free in self._free.values():
            while free:
                self._cuda.quietly("cuEventDestroy", free.pop())
