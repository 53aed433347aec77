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
        self._changed = threading.Condition()
        self._running = 0
        self._closed = False

    def hand_over(self, task: Callable[[], object]) -> None:
        """Have a thread do it, unless the query ends before; it raises nothing.

        Where there is no thread at all nobody does: whoever hands over must be able to do it, too.
        """
        with self._changed:
            if self._closed:
                return
            self._tasks.append(task)
            if self._running == self._most:
                return
            if not self._running:
                _open.add(self)
            self._running += 1
        try:
            run_on_thread(self._run)
        except RuntimeError:  # the system has no more of them
            with self._changed:
                self._leave()

    def close(self, seconds: float | None = None) -> None:
        """Let go of what has not begun, and wait for what has; for so many seconds at most."""
        with self._changed:
            self._closed = True
            self._tasks.clear()
            self._changed.wait_for(lambda: not self._running, seconds)

    def _run(self) -> None:
        with self._working():
            while (task := self._next()) is not None:
                self._budget.begin()
                with suppress(BaseException):  # the task keeps what it has raised
                    task()
                ThreadBudget.end()
                del task  # what it knows is let go of before the next one comes

    def _next(self) -> Callable[[], object] | None:
        """The next task; None where there is none: this thread is the query's no more."""
        with self._changed:
            if self._tasks:
                return self._tasks.popleft()
            self._leave()
            return None

    def _leave(self) -> None:
        """One thread fewer; with the lock."""
        self._running -= 1
        if not self._running:
            self._changed.notify_all()


def _close_all() -> None:
    for workers in list(_open):
        workers.close(_EXIT_S)


atexit.register(_close_all)
