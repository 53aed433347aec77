"""Threads that encode the columns of a heap, several at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final

from bamquery.errors import CancelledError
from bamquery.statement_context.thread_budget import ThreadBudget, working_for

_PATIENCE: Final = 0.05
"""Seconds until who waits for others notices that nobody wants their work any more."""
MOST_STEPPING: Final = 8
"""Threads that go through columns in Python at most: native calls share their work with all others."""


class EncodingThreads:
    """Does what is to be done for each column, on as many threads as a writer may use."""

    def __init__(self, threads: int, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Without a thread yet; one is the caller's. `cancelled` may be asked by any of them."""
        self._cancelled = cancelled
        self._budget = ThreadBudget(threads)
        self._others = min(threads, MOST_STEPPING) - 1
        self._pool = ThreadPoolExecutor(self._others, "bamquery-encoder") if self._others else None

    def run_all(self, tasks: Sequence[Callable[[], None]]) -> None:
        """See `bamquery.storage.fragments.encoded_columns.RunAll`.

        Raises:
            CancelledError: it was cancelled; others may be at work still, and begin nothing more.
        """
        left = deque(enumerate(tasks))
        errors: dict[int, BaseException] = {}

        def work() -> None:
            with working_for(self._budget):
                while not errors and not self._cancelled():
                    try:
                        number, task = left.popleft()
                    except IndexError:
                        return
                    try:
                        task()
                    except BaseException as error:
                        errors[number] = error

        helpers = []
        if self._pool is not None:
            helpers = [self._pool.submit(work) for _ in range(min(self._others, len(tasks) - 1))]
        work()
        while wait(helpers, _PATIENCE).not_done and not self._cancelled():
            pass
        if errors:
            raise errors[min(errors)]
        if self._cancelled():
            raise CancelledError("the writing of a fragment was cancelled")
        for helper in helpers:
            helper.result()

    def close(self) -> None:
        """Let the threads go, once they have come to the end of what they do."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
