"""Recursion over deep statements and plans, on a thread whose stack has room for it.

Python allows a thousand calls within each other, of which a level of parentheses takes 25. More is a setting
of the whole interpreter, and safe only where the stack is large, which that of a caller's thread may not be.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from bamquery.errors import CancelledError
from bamquery.statement_context.cancellation import check_cancelled, use_cancellation_check
from bamquery.statement_context.limits import statement_limits, use_statement_limits

Answer = TypeVar("Answer")

_CALLS: Final = 150_000
"""Calls within each other; one that goes through C takes less than 2 KiB of the stack."""
_STACK: Final = 512 << 20
"""Bytes of address space; memory is taken as the stack grows."""
_PATIENCE: Final = 0.05
"""Seconds from an interrupt until who waits for the thread notices."""

_one_at_a_time: Final = threading.Lock()


class _ThreadState(threading.local):
    is_deep = False


_here = _ThreadState()


def with_deep_recursion(function: Callable[[], Answer]) -> Answer:
    """`function()`; where it recurses deeper than Python allows, once more on a thread that may.

    It is to change nothing before it answers, since it may be called twice.

    Raises:
        RecursionError: it is deeper than even that.
    """
    if _here.is_deep:
        return function()
    try:
        return function()
    except RecursionError:
        pass  # not within its handler: what is raised there would carry a thousand frames
    return on_deep_stack(function)


def on_deep_stack(function: Callable[[], Answer]) -> Answer:
    """`function()` on a thread with a large stack, under the limits of this one's statement.

    Raises:
        RecursionError: it is too deep, or there is no room for such a thread.
        CancelledError: this thread's statement was cancelled; `function` has asked, and ended.
    """
    if _here.is_deep:
        return function()
    answers: list[Answer] = []
    errors: list[BaseException] = []
    ended, stopped = threading.Event(), threading.Event()
    limits = statement_limits()

    def check() -> None:
        if stopped.is_set():
            raise CancelledError("the query was cancelled")

    def work() -> None:
        _here.is_deep = True
        try:
            with use_cancellation_check(check), use_statement_limits(limits):
                answers.append(function())
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    # The number of calls is the interpreter's: nobody may put it back while another thread needs it.
    while not _one_at_a_time.acquire(timeout=_PATIENCE):
        check_cancelled()
    before = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(max(before, _CALLS))
        thread = _start_thread(work)
        try:
            while not ended.wait(_PATIENCE):
                check_cancelled()
        except BaseException:
            stopped.set()
            thread.join()
            errors.clear()
            raise
        thread.join()
    finally:
        sys.setrecursionlimit(before)
        _one_at_a_time.release()
    if errors:
        raise errors.pop()  # an error that is kept here knows itself, and all that was made so far
    return answers.pop()


def _start_thread(work: Callable[[], None]) -> threading.Thread:
    before = threading.stack_size(_STACK)
    try:
        thread = threading.Thread(target=work, name="bamquery-deep")
        thread.start()
    except (RuntimeError, MemoryError) as error:
        raise RecursionError(f"no thread with a large stack can be had: {error}") from None
    finally:
        threading.stack_size(before)
    return thread
