"""A query's steps on threads of their own, so that who waits for them is never deaf and never waits for ever.

Calls into a GPU's libraries end when the GPU does; nothing can ask them to stop.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, wait
from typing import Any, Final, Generic, TypeVar

from bamquery.errors import GpuError

Answer = TypeVar("Answer")

STEP_DEADLINE_S: Final = 300.0
"""From one sign of life of a step to the next: one call into a library comes between, over a chunk."""
_PATIENCE_S: Final = 0.02
_GRACE_S: Final = 0.3
"""For a step to notice that it is not wanted any more, before it is left to itself."""
_EXIT_S: Final = 10.0
"""For steps that were left, before the interpreter ends under them."""
_END: Final = object()

_left: list[threading.Thread] = []


class StepsApart(Generic[Answer]):
    """An iterator over a generator, each of whose steps runs on a thread of its own, one after the other."""

    def __init__(
        self,
        steps: Generator[Answer, None, None],
        check: Callable[[], None],
        stop: Callable[[], None],
        last_sign: Callable[[], float],
    ) -> None:
        """Of a generator that has not begun.

        Args:
            steps: what to run.
            check: raises where the query was cancelled, or its time is up.
            stop: lets the query be cancelled.
            last_sign: `time.monotonic()` of when a step last showed that it is alive.
        """
        self._steps = steps
        self._check = check
        self._stop = stop
        self._last_sign = last_sign
        self._lock = threading.Lock()
        self._abandoned = False

    def __iter__(self) -> StepsApart[Answer]:
        return self

    def __next__(self) -> Answer:
        if self._abandoned:
            raise StopIteration
        found: Any = self._apart(lambda: next(self._steps, _END))
        if found is _END:
            raise StopIteration
        answer: Answer = found
        return answer

    def close(self) -> None:
        """End the generator; it may be left to itself as `__next__` leaves a step."""
        if not self._abandoned:
            self._apart(self._steps.close)

    def _apart(self, step: Callable[[], Any]) -> Any:
        outcome: Future[Any] = Future()
        thread = threading.Thread(target=self._run, args=(step, outcome), name="bamquery-step", daemon=True)
        began = time.monotonic()
        thread.start()
        try:
            while not wait([outcome], _PATIENCE_S).done:
                self._watch(outcome, began)
        except BaseException:
            self._stop()
            wait([outcome], _GRACE_S)
            with self._lock:
                self._abandoned = not outcome.done()
            if self._abandoned:
                _leave(thread)
            raise
        return outcome.result()

    def _watch(self, outcome: Future[Any], began: float) -> None:
        try:
            self._check()
        except BaseException:
            # The step notices by itself, as a rule, and may have a better error.
            if wait([outcome], _GRACE_S).done:
                return
            raise
        silence = time.monotonic() - max(began, self._last_sign())
        if silence > STEP_DEADLINE_S:
            raise GpuError(
                f"the GPU's libraries have not come back for {silence:.0f} s: the query is left to itself; "
                "where the GPU does not end what it does (nvidia-smi, dmesg), end this process"
            )

    def _run(self, step: Callable[[], Any], outcome: Future[Any]) -> None:
        answer: Any = None
        failure: BaseException | None = None
        try:
            answer = step()
        except BaseException as error:
            failure = error
        with self._lock:
            if not self._abandoned:
                if failure is None:
                    outcome.set_result(answer)
                else:
                    outcome.set_exception(failure)
                return
        self._steps.close()


def _leave(thread: threading.Thread) -> None:
    if not _left:
        atexit.register(_wait_at_exit)
    _left[:] = [one for one in _left if one.is_alive()] + [thread]


def _wait_at_exit() -> None:
    until = time.monotonic() + _EXIT_S
    for thread in _left:
        thread.join(max(until - time.monotonic(), 0))
