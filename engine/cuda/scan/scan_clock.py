"""Events and kernels that a scan waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bamquery.driver.gpu.launch import Launch
from bamquery.driver.gpu.wait import STUCK, wait_until
from bamquery.engine.cuda.session import CudaSession
from bamquery.errors import GpuError

_LONGEST_NAP_S: Final = 30e-6


class StreamTime:
    """How long a stream takes for what it is given from now on."""

    def __init__(self, session: CudaSession, stream: Any) -> None:
        self._gpu = session.gpu
        self._stream = stream
        self._events = [self._gpu.events.record(stream, timed=True)]

    def end(self) -> None:
        """All of it was given."""
        self._events.append(self._gpu.events.record(self._stream, timed=True))

    def seconds(self) -> float:
        """Once the stream has done it, by the GPU's clock."""
        return float(self._gpu.cuda("read an event", "cuEventElapsedTime", *self._events)) / 1e3

    def close(self) -> None:
        """Nobody asks any more."""
        while self._events:
            self._gpu.events.give_back(self._events.pop(), timed=True)


class ScanClock:
    """Waits without being deaf: whoever waits asks now and then whether the scan should stop."""

    def __init__(self, session: CudaSession, check: Callable[[], None]) -> None:
        """`check` raises where the scan should stop."""
        self.session: Final = session
        self._check = check
        self._launches: list[Launch] = []

    def wait(self, event: Any) -> None:
        """Wait for an event; the scan may be cancelled meanwhile.

        Raises:
            CancelledError: it was.
            GpuError: a kernel failed, or what is before the event does not end.
        """
        self.session.wait(lambda deadline_s: self._wait(event, deadline_s))
        self.reap()

    def _wait(self, event: Any, deadline_s: float) -> None:
        cuda, name = self.session.gpu.cuda, self.session.name

        def has_ended() -> bool:
            (status,) = cuda.api.cuEventQuery(event)
            if status == cuda.api.CUresult.CUDA_ERROR_NOT_READY:
                return False
            if int(status):
                why = cuda.explain(status)
                raise GpuError(f"the scan failed on {name}: {why}; it takes no more work from this process")
            return True

        if not wait_until(has_ended, deadline_s, check=self._check, longest_nap_s=_LONGEST_NAP_S):
            raise GpuError(f"a scan's step did not end on {name} within {deadline_s:g} s: {STUCK}")

    def wait_for(self, stream: Any) -> None:
        """Wait for what a stream was given before; as `wait`."""
        event = self.event(stream)
        try:
            self.wait(event)
        finally:
            self.forget(event)

    def event(self, stream: Any) -> Any:
        """An event behind what the stream was given before; `forget` it."""
        return self.session.gpu.events.record(stream)

    def forget(self, event: Any) -> None:
        """Nobody asks for the event any more."""
        self.session.gpu.events.give_back(event)

    def settle(self, events: list[Any], seconds: float) -> bool:
        """Wait so long until all events have ended, and forget them.

        False: one has not, or what is before it failed. The GPU may still use what it was given then.
        """
        api = self.session.gpu.cuda.api
        statuses: list[int] = []

        def have_ended() -> bool:
            statuses[:] = [api.cuEventQuery(event)[0] for event in events]
            return api.CUresult.CUDA_ERROR_NOT_READY not in statuses

        if not wait_until(have_ended, seconds) or any(map(int, statuses)):
            return False
        while events:
            self.forget(events.pop())
        return True

    def note_launch(self, launch: Launch) -> Callable[[], float]:
        """A kernel that drives queue pairs was started; the result, called once it has ended, is its time."""
        self._launches.append(launch)
        return lambda: launch.wait(1.0)

    def reap(self) -> None:
        """Look which kernels have ended: they keep a controller awake until then. GpuError: one failed."""
        self._launches = [launch for launch in self._launches if not launch.done]
