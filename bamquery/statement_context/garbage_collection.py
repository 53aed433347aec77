"""Python's collector of cyclic garbage stands still while a statement is planned.

Planning makes millions of objects, and next to no garbage that reference counting does not free. A pass of
the collector looks at all of them at a stretch, and at whatever else the program holds: no interrupt is seen
meanwhile, and passes come again as the objects become more. For the same reason nothing of them is kept that
is not needed: the first pass afterwards looks at what is left.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Self

from bamquery.errors import BamQueryError, InternalError


class _Collector:
    """The process's, and the pauses that keep it from going."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a handler of signals may plan a statement, too
        self._pauses: set[int] = set()
        self._goes_on = False  # whether it was going before the first of them

    def stop(self, pause: int) -> None:
        with self._lock:
            self._pauses.add(pause)
            if len(self._pauses) == 1:
                self._goes_on = gc.isenabled()
                gc.disable()

    def end(self, pause: int) -> None:
        """Let it go after the last of the pauses; again is harmless."""
        with self._lock:
            self._pauses.discard(pause)
            if self._goes_on and not self._pauses:
                self._goes_on = False
                gc.enable()

    def renew(self) -> None:
        """In a process that was forked, where other threads do not go on."""
        self._lock = threading.RLock()
        self._pauses.clear()
        self.end(0)


_COLLECTOR: Final = _Collector()


class _Pause:
    def __enter__(self) -> Self:
        try:
            _COLLECTOR.stop(id(self))
        except BaseException:  # Ctrl-C
            _COLLECTOR.end(id(self))
            raise
        return self

    def __exit__(self, *error: object) -> None:
        _COLLECTOR.end(id(self))

    def __del__(self) -> None:
        _COLLECTOR.end(id(self))  # Ctrl-C may have come just before `__exit__` began


def pause_collection() -> _Pause:
    """A context manager: no pass begins before it has ended, and all others with it, on whatever thread.

    A collector that was off before stays off. All that is made meanwhile is kept in the youngest generation,
    cyclic garbage included: this is for what ends soon, and frees by itself what it does not keep.
    """
    return _Pause()


@contextmanager
def planning() -> Iterator[None]:
    """The collector stands still while a plan is made, and the error of a statement keeps nothing of it.

    An error has the calls that it came through, with their variables, which is all that was made so far. They
    are let go of, but for faults of ours. What our caller was handling when it asked is left as it is.
    """
    handled = sys.exception()
    with pause_collection():
        try:
            yield
        except InternalError:
            raise
        except BamQueryError as error:
            _forget_variables(error, handled)
            raise


def _forget_variables(error: BaseException, handled: BaseException | None) -> None:
    """Those of the calls that have ended; also of the errors that it came from, which may come from it.

    `handled`: one that it did not come from, nor from what that came from, although Python names it.
    """
    seen: set[int] = {id(handled)}
    waiting: list[BaseException | None] = [error]
    while waiting:
        found = waiting.pop()
        if found is not None and id(found) not in seen:
            seen.add(id(found))
            traceback.clear_frames(found.__traceback__)
            waiting += [found.__cause__, found.__context__]


os.register_at_fork(after_in_child=_COLLECTOR.renew)
