"""A query's steps on threads of their own, so that who waits for them is never deaf and never waits for ever.

Calls into a GPU's libraries end when the GPU does; nothing can ask them to stop.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from bamquery.engine.execution.kept_threads import run_on_thread
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

_left: list[_Outcome] = []
_lock = threading.Lock()


class _Outcome:
    """What became of a step."""

    def __init__(self) -> None:
        self.done: Final = threading.Event()
        self.ended: Final = threading.Event()
        """What was left has also cleaned up."""
        self.answer: Any = None
        self.failure: BaseException | None = None


class DetachedSteps(Generic[Answer]):
    """An iterator over a generator, whose steps run on other threads, one after the other."""

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
        self._over = False
        """Nothing more comes: it has ended, or was left."""

    def __iter__(self) -> DetachedSteps[Answer]:
        return self

    def __next__(self) -> Answer:
        if self._over:
            raise StopIteration
        found: Any = self._run_detached(lambda: next(self._steps, _END))
        if found is _END:
            self._over = True
            raise StopIteration
        answer: Answer = found
        return answer

    def close(self) -> None:
        """End the generator; it may be left to itself as `__next__` leaves a step."""
        if not self._over:
            self._run_detached(self._steps.close)
            self._over = True

    def _run_detached(self, step: Callable[[], Any]) -> Any:
        outcome = _Outcome()
        began = time.monotonic()
        run_on_thread(lambda: self._run(step, outcome))
        try:
            while not outcome.done.wait(_PATIENCE_S):
                self._watch(outcome, began)
        except BaseException:
            self._stop()
            outcome.done.wait(_GRACE_S)
            with self._lock:
                left = not outcome.done.is_set()
                self._over = self._over or left
            if left:
                _leave_behind(outcome)
            raise
        if outcome.failure is not None:
            self._over = True
            raise outcome.failure
        return outcome.answer

    def _watch(self, outcome: _Outcome, began: float) -> None:
        try:
            self._check()
        except BaseException:
            # The step notices by itself, as a rule, and may have a better error.
            if outcome.done.wait(_GRACE_S):
                return
            raise
        silence = time.monotonic() - max(began, self._last_sign())
        if silence > STEP_DEADLINE_S:
            raise GpuError(
                f"the GPU's libraries have not come back for {silence:.0f} s: the query is left to itself; "
                "where the GPU does not end what it does (nvidia-smi, dmesg), end this process"
            )

    def _run(self, step: Callable[[], Any], outcome: _Outcome) -> None:
        try:
            outcome.answer = step()
        except BaseException as error:
            outcome.failure = error
        with self._lock:
            left = self._over
            outcome.done.set()
        if left:
            with suppress(Exception):  # nobody is there to hear of it
                self._steps.close()
            outcome.ended.set()


def _leave_behind(outcome: _Outcome) -> None:
    if not _left:
        atexit.register(_wait_at_exit)
    _left[:] = [one for one in _left if not one.ended.is_set()] + [outcome]


def _wait_at_exit() -> None:
    until = time.monotonic() + _EXIT_S
    for outcome in _left:
        outcome.ended.wait(max(until - time.monotonic(), 0))
