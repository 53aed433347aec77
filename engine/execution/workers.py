"""A query's threads: those of the process that do what it hands over, a bounded number of them."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any, Final

from bamquery.engine.execution.kept_threads import run_on_thread
from bamquery.statement_context.thread_budget import ThreadBudget

_EXIT_S: Final = 60.0
"""For tasks that are in work when the interpreter ends, of queries that nobody has closed."""

_open: weakref.WeakSet[QueryWorkers] = weakref.WeakSet()


class QueryWorkers:
    """Does tasks in their order, on as many threads at once as a query may use, or on fewer."""

    def __init__(
        self, threads: int, budget: ThreadBudget, working: Callable[[], AbstractContextManager[Any]]
    ) -> None:
        """Without a thread yet.

        Args:
            threads: how many at most.
            budget: counts those that have a task in work.
            working: makes a context in which each of them works.
        """
        self._most = threads
        self._budget = budget
        self._working = working
        self._tasks: deque[Callable[[], object]] = deque()
        # Plain locks: Ctrl-C may come to who hands over or closes at any moment, and leaves none held.
        self._lock = threading.Lock()
        self._asked = 0
        """Threads that were asked for, and have not gone: too many rather than too few after Ctrl-C."""
        self._at_work: set[threading.Lock] = set()
        """One for each thread that has come, held until it goes."""
        self._closed = False

    def hand_over(self, task: Callable[[], object]) -> None:
        """Have a thread do it, unless the query ends before; it raises nothing.

        Where there is no thread at all nobody does: whoever hands over must be able to do it, too.
        """
        with self._lock:
            if self._closed:
                return
            self._tasks.append(task)
            if self._asked >= self._most:
                return
            if not self._asked:
                _open.add(self)
            self._asked += 1
        try:
            run_on_thread(self._run)
        except RuntimeError:  # the system has no more of them
            with self._lock:
                self._asked -= 1

    def close(self, seconds: float | None = None) -> None:
        """Let go of what has not begun, and wait for what has; for so many seconds at most."""
        with self._lock:
            self._closed = True
            self._tasks.clear()
            at_work = list(self._at_work)
        for own in at_work:
            own.acquire(timeout=-1 if seconds is None else seconds)

    def _run(self) -> None:
        own = threading.Lock()
        own.acquire()
        with self._lock:
            if self._closed:
                return
            self._at_work.add(own)
        with self._working():
            while (task := self._next(own)) is not None:
                self._budget.begin()
                with suppress(BaseException):  # the task keeps what it has raised
                    task()
                ThreadBudget.end()
                del task  # what it knows is let go of before the next one comes

    def _next(self, own: threading.Lock) -> Callable[[], object] | None:
        """The next task; None where there is none: this thread is the query's no more."""
        with self._lock:
            if self._tasks:
                return self._tasks.popleft()
            self._asked -= 1
            self._at_work.remove(own)
        own.release()
        return None


def _close_all() -> None:
    for workers in list(_open):
        workers.close(_EXIT_S)


atexit.register(_close_all)
