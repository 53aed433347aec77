"""One thread that looks at running queries now and then, on behalf of all who watch them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from bamquery.session.query_progress import RunningQuery

_LONGEST_WAIT: Final = 1.0
"""Seconds after which the thread looks whether there is still something to do."""


class Watcher(Protocol):
    """Somebody who looks at queries.

    Attributes:
        delay: seconds from a query's beginning to the first look.
        interval: seconds from one look to the next.
    """

    delay: float
    interval: float

    def look(self, query: RunningQuery) -> None:
        """On the ticker's thread, while the query runs; raises nothing."""
        ...

    def hide(self, query: RunningQuery) -> None:
        """Take away what is on a screen: the query's caller has control, or it is over. On its thread."""
        ...


@dataclass(slots=True)
class _Watch:
    query: RunningQuery
    watcher: Watcher
    due: float


class Ticker:
    """Thread-safe. The thread is a daemon that begins with the first watched query and goes after the last.

    A query that is over before its watchers' delay costs two entries in a list: nobody is woken for it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Reentrant: a garbage collection under it may end an abandoned query.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._watches: list[_Watch] = []
        self._thread: threading.Thread | None = None
        self._wakes = 0.0

    def add(self, query: RunningQuery, watcher: Watcher) -> None:
        """Let the watcher look at the query until `remove`."""
        with self._lock:
            due = self._clock() + watcher.delay
            self._watches.append(_Watch(query, watcher, due))
            if self._thread is None or not self._thread.is_alive():  # or lost in a fork
                self._thread = threading.Thread(target=self._run, name="bamquery-progress", daemon=True)
                self._wakes = due
                self._thread.start()
            elif due < self._wakes:
                self._changed.notify()

    def remove(self, query: RunningQuery) -> None:
        """Nobody looks at the query any more; a look that is being taken comes to its end."""
        with self._lock:
            self._watches = [watch for watch in self._watches if watch.query is not query]

    def tick(self) -> float:
        """Take the looks that are due; seconds until the next one is, `_LONGEST_WAIT` at most."""
        with self._lock:
            now = self._clock()
            due = [watch for watch in self._watches if watch.due <= now]
            for watch in due:
                watch.due = now + watch.watcher.interval
        for watch in due:
            watch.watcher.look(watch.query)
        with self._lock:
            now = self._clock()
            next_due = min((watch.due for watch in self._watches), default=now + _LONGEST_WAIT)
            return min(max(next_due - now, 0.0), _LONGEST_WAIT)

    def _run(self) -> None:
        while True:
            wait = self.tick()
            with self._lock:
                idle = not self._watches
                self._wakes = self._clock() + wait
                self._changed.wait(wait)
                if idle and not self._watches:
                    self._thread = None
                    return

    def renew(self) -> None:
        """In a process made by fork, which has neither the thread nor whoever held the lock."""
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._watches = []
        self._thread = None


TICKER: Final = Ticker()
os.register_at_fork(after_in_child=TICKER.renew)


class WatcherGroup:
    """What a query tells of itself (`query_progress.Observer`), passed on to its watchers."""

    def __init__(self, watchers: tuple[Watcher, ...], ticker: Ticker = TICKER) -> None:
        self._watchers = watchers
        self._ticker = ticker

    def on_begin(self, query: RunningQuery) -> None:
        """See `Observer`."""
        for watcher in self._watchers:
            self._ticker.add(query, watcher)

    def on_return_to_caller(self, query: RunningQuery) -> None:
        """See `Observer`."""
        for watcher in self._watchers:
            watcher.hide(query)

    def on_end(self, query: RunningQuery) -> None:
        """See `Observer`."""
        self._ticker.remove(query)
        for watcher in self._watchers:
            watcher.hide(query)
