"""Statements that run now: how many there may be, and who stops those that nobody waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyarrow import flight

from bamquery.errors import CancelledError
from bamquery.flight.options import ServerLimits

_LOOK_SECONDS: Final = 0.1


class RunningCall:
    """One call's work: told to stop from another thread, asked by its own."""

    def __init__(self, context: Any, ends: float | None) -> None:
        """Of a call; `ends` is when its time is up."""
        self._context = context
        self._ends = ends
        self._why: flight.FlightError | None = None
        self._stop: Callable[[], None] | None = None
        self._close: Callable[[], None] | None = None
        self.given_at: float | None = None
        """When the client got a batch, while it has not asked for another one."""

    def on_stop(self, stop: Callable[[], None], close: Callable[[], None] | None = None) -> None:
        """How to stop what runs, again and again; `close` lets go of what it holds while it waits."""
        self._stop, self._close = stop, close
        if self._why is not None:
            stop()

    def stop(self, why: flight.FlightError) -> None:
        """Stop it soon, from any thread; the first reason counts."""
        self._why = self._why or why
        if self._stop is not None:
            self._stop()

    def check(self) -> None:
        """Stop here where it was told to.

        Raises:
            FlightError: why.
        """
        if self._why is not None:
            raise self._why

    @contextmanager
    def reasons(self) -> Iterator[None]:
        """Let what ends inside because it was told to say why.

        Raises:
            FlightError: why.
        """
        try:
            yield
        except CancelledError:
            self.check()
            raise

    def look(self, idle_seconds: float) -> bool:
        """Stop it where nobody waits for it, or its time is up; whether only its client holds it then."""
        now = time.monotonic()
        if self._why is not None:
            self.stop(self._why)  # it may have begun something else since
        elif self._context.is_cancelled():
            self.stop(flight.FlightCancelledError("the client cancelled the call, or has gone"))
        elif self._ends is not None and now > self._ends:
            self.stop(flight.FlightTimedOutError("the statement took longer than the server lets one take"))
        elif self.given_at is not None and now - self.given_at > idle_seconds:
            self.stop(
                flight.FlightTimedOutError(
                    f"the client took no batch of the answer for {idle_seconds:g} seconds"
                )
            )
        return self._why is not None and self.given_at is not None

    def close(self) -> None:
        """Let go of what it holds, while it waits for a client that may never come back."""
        if self._close is not None:
            self._close()


class RunningStatements:
    """All of a server's. Thread-safe."""

    def __init__(self, limits: ServerLimits) -> None:
        """None at first; a thread looks after them until `close`."""
        self._limits = limits
        self._changed = threading.Condition()
        self._running: set[RunningCall] = set()
        self._draining = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._look, name="bamquery-flight-watch", daemon=True)
        self._thread.start()

    @contextmanager
    def turn(self, context: Any) -> Iterator[RunningCall]:
        """Wait for a turn, which lasts until the end.

        Raises:
            FlightUnavailableError: it did not come in time, or the server ends.
        """
        running = self._begin(context)
        try:
            yield running
        finally:
            with self._changed:
                # Under the lock: nobody may ask the call's context anything once the call is over.
                self._running.discard(running)
                self._changed.notify_all()

    def _begin(self, context: Any) -> RunningCall:
        limits = self._limits
        seconds = limits.statement_seconds
        with self._changed:
            self._changed.wait_for(
                lambda: self._draining or len(self._running) < limits.statements, limits.queue_seconds
            )
            if self._draining:
                raise flight.FlightUnavailableError("the server is shutting down")
            if len(self._running) >= limits.statements:
                raise flight.FlightUnavailableError(
                    f"the server runs {limits.statements} statements already, and none ended within "
                    f"{limits.queue_seconds:g} seconds: try again later"
                )
            running = RunningCall(context, None if seconds is None else time.monotonic() + seconds)
            self._running.add(running)
            return running

    @property
    def count(self) -> int:
        """How many there are."""
        with self._changed:
            return len(self._running)

    def drain(self, seconds: float) -> bool:
        """Begin no more, and wait for those that run; whether all have ended."""
        with self._changed:
            self._draining = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not self._running, seconds)

    def stop_all(self, seconds: float) -> bool:
        """Stop those that run; whether all have ended in time."""
        with self._changed:
            for running in self._running:
                running.stop(flight.FlightUnavailableError("the server is shutting down"))
            return self._changed.wait_for(lambda: not self._running, seconds)

    def close(self) -> None:
        """Look after nothing any more."""
        self._closed.set()
        self._thread.join(1)

    def _look(self) -> None:
        while not self._closed.wait(_LOOK_SECONDS):
            with self._changed:
                left = [running for running in self._running if running.look(self._limits.idle_seconds)]
                self._running.difference_update(left)
                self._changed.notify_all()
            for running in left:  # whose thread is held by its client, and nothing else by it
                running.close()
