"""Memory of large arrays, kept for the next ones: to touch fresh memory costs more than to fill it.

It is the process's (`driver/native/memory`): of C++ where it has large vectors, and of numpy's arrays that
threads make which work for a query.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bamquery import _native as native
from bamquery.engine.execution.kept_threads import run_on_thread

_PART: Final = 16
"""Part of a query's memory limit that is kept at most."""
_MOST: Final = 512 << 20
_IDLE_S: Final = 1.0
"""What is kept is given back once it has been the same for so long, or for up to twice as long."""

_open: list[int] = []
"""What queries that run let be kept."""
_is_watched = False
_lock = threading.Lock()


@contextmanager
def keep_large_memory(memory_limit: int) -> Iterator[None]:
    """A query with this limit runs until the end. The least limit counts of those that run, or ran last."""
    most = min(memory_limit // _PART, _MOST)
    with _lock:
        _open.append(most)
        native.keep_large_memory(min(_open))
    try:
        yield
    finally:
        with _lock:
            _open.remove(most)
            if _open:
                native.keep_large_memory(min(_open))


@contextmanager
def use_large_memory() -> Iterator[None]:
    """Arrays that this thread makes until the end are of it, unless somebody has set another allocator."""
    if not _is_watched:
        _watch()
    if not native.begin_large_arrays():
        yield
        return
    try:
        yield
    finally:
        native.end_large_arrays()


def _watch() -> None:
    global _is_watched  # noqa: PLW0603
    with _lock:
        if _is_watched:
            return
        _is_watched = True
    try:
        run_on_thread(_release_when_idle)
    except RuntimeError:  # the system has no more threads
        _is_watched = False
        native.keep_large_memory(0)


def _release_when_idle() -> None:
    global _is_watched  # noqa: PLW0603
    before = None
    while (now := native.large_memory()) != before:
        before = now
        time.sleep(_IDLE_S)
    _is_watched = False
    native.release_large_memory(0)


def _forget_threads() -> None:
    global _is_watched, _lock
    _is_watched, _lock = False, threading.Lock()


os.register_at_fork(after_in_child=_forget_threads)
