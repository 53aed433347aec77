"""Threads of the process, which stay for later: to begin one costs more than many a task.

A thread's first call of CUDA takes a third of a millisecond, and what allocators keep for a thread is lost
with it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

_MOST_IDLE: Final = 64

_idle: list[_Worker] = []
_lock = threading.Lock()


class _Worker:
    """A thread that does one thing after the other.

    A daemon: whoever has it do something sees to it that this has ended before the interpreter does.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Callable[[], object]] = SimpleQueue()
        threading.Thread(target=self._run, name="bamquery", daemon=True).start()

    def do(self, task: Callable[[], object]) -> None:
        """Do it, and wait for the next."""
        self._tasks.put(task)

    def _run(self) -> None:
        while True:
            task = self._tasks.get()
            task()
            del task
            with _lock:
                if len(_idle) >= _MOST_IDLE:
                    return
                _idle.append(self)


def run_on_thread(task: Callable[[], object]) -> None:
    """Have a thread do it, one that was kept if there is one; it raises nothing.

    Raises:
        RuntimeError: there is none, and the system has no other one.
    """
    with _lock:
        worker = _idle.pop() if _idle else None
    (worker or _Worker()).do(task)


os.register_at_fork(after_in_child=_idle.clear)
