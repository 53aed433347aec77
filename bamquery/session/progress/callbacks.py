"""Functions of a program that are called with a query's progress."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, TypeAlias

from bamquery.session.query_progress import QueryProgress, RunningQuery

Callback: TypeAlias = Callable[[QueryProgress], object]

_SHORTEST: Final = 0.01
"""Seconds between two calls: below this the calls would be the work."""


class ProgressCallback:
    """A callback that a connection calls until `remove`; a context manager that removes it.

    It is a `bamquery.session.progress.ticker.Watcher`.
    """

    def __init__(self, callback: Callback, interval: float, callbacks: Callbacks) -> None:
        """Made by `Callbacks.add`."""
        self.delay = self.interval = interval
        self._callback = callback
        self._callbacks = callbacks

    def remove(self) -> None:
        """Call it no more; again is harmless."""
        self._callbacks.remove(self)

    def look(self, query: RunningQuery) -> None:
        """Call it; what it raises becomes the query's failure."""
        if self not in self._callbacks or query.is_over:
            return
        try:
            self._callback(query.progress())
        except BaseException as error:
            query.fail(error)

    def hide(self, query: RunningQuery) -> None:
        """It has no screen."""

    def __enter__(self) -> ProgressCallback:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


class Callbacks:
    """Those of a connection; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: tuple[ProgressCallback, ...] = ()

    def add(self, callback: Callback, interval: float) -> ProgressCallback:
        """One more, for queries that begin from now on.

        Raises:
            TypeError: it cannot be called, or the interval is no number. ValueError: it is too short.
        """
        if not callable(callback):
            raise TypeError(f"callback is a function of one argument, not {type(callback).__name__}")
        if isinstance(interval, bool) or not isinstance(interval, (int, float)):
            raise TypeError(f"interval is a number of seconds, not {type(interval).__name__}")
        if not _SHORTEST <= interval < float("inf"):
            raise ValueError(f"interval is {_SHORTEST} seconds or more, not {interval}")
        one = ProgressCallback(callback, float(interval), self)
        with self._lock:
            self._all = (*self._all, one)
        return one

    def remove(self, one: ProgressCallback) -> None:
        """Without it; harmless where it is gone."""
        with self._lock:
            self._all = tuple(other for other in self._all if other is not one)

    def __contains__(self, one: object) -> bool:
        return one in self._all

    @property
    def watchers(self) -> tuple[ProgressCallback, ...]:
        """As they are now."""
        return self._all
