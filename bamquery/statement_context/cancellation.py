"""Whether the statement that a thread works for was cancelled: asked in the middle of long steps.

What cannot ask, such as a call into a library, is left to itself where the query is cancelled: it comes to
its end on a thread of its own, and nobody looks at its answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any, Final, TypeVar

Answer = TypeVar("Answer")
Item = TypeVar("Item")

_PATIENCE: Final = 0.05
"""Seconds from a query's end until who waits for a call notices."""


class _Current(threading.local):
    check: Callable[[], None] | None = None


_current = _Current()


def check_cancelled() -> None:
    """Stop here where this thread's statement was cancelled; outside of statements go on.

    Raises:
        CancelledError: it was.
    """
    if _current.check is not None:
        _current.check()


def check_each(items: Iterable[Item]) -> Iterator[Item]:
    """The items, of which there may be hundreds of thousands; `check_cancelled` before each."""
    for item in items:
        check_cancelled()
        yield item


def set_check(check: Callable[[], None] | None) -> None:
    """What `check_cancelled` does on this thread, which works for one query only."""
    _current.check = check


@contextmanager
def use_cancellation_check(check: Callable[[], None] | None) -> Iterator[None]:
    """What `check_cancelled` does on this thread until the end."""
    before = _current.check
    _current.check = check
    try:
        yield
    finally:
        _current.check = before


@contextmanager
def add_cancellation_check(check: Callable[[], None]) -> Iterator[None]:
    """As `use_cancellation_check`, where what this thread works for already may stop it, too."""
    around = _current.check

    def check_both() -> None:
        assert around is not None
        around()
        check()

    with use_cancellation_check(check if around is None else check_both):
        yield


class _Call(threading.Thread):
    """Not a daemon: the interpreter must not go away under a library that is at work."""


def interruptible(function: Callable[..., Answer], *arguments: Any) -> Answer:
    """`function(*arguments)`, on another thread where this one works for a query.

    Arguments must own their memory, and nobody may write to it: the call may outlive the query. It should
    take milliseconds at least, without Python's lock; a thread costs a tenth of one.

    Raises:
        CancelledError: the query was cancelled; the call goes on, as it does where somebody pressed Ctrl-C.
    """
    if _current.check is None:
        return function(*arguments)
    from bamquery.statement_context.thread_budget import (  # noqa: PLC0415 - native code, which a prompt need not load
        ThreadBudget,
        working_for,
    )

    outcome: Future[Answer] = Future()
    budget = ThreadBudget.current()

    def work() -> None:
        try:
            with working_for(budget):
                outcome.set_result(function(*arguments))
        except BaseException as error:
            outcome.set_exception(error)

    check_cancelled()
    _Call(target=work, name="bamquery-call").start()
    with working_for(None):  # it only waits
        while not wait([outcome], _PATIENCE).done:
            check_cancelled()
    return outcome.result()
