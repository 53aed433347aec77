"""Who waits for a step can leave it, and what was left ends by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator

import pytest

from bamquery.engine.execution import detached_steps as steps_apart
from bamquery.engine.execution import kept_threads
from bamquery.engine.execution.detached_steps import DetachedSteps
from bamquery.errors import CancelledError, GpuError


class Query:
    """A query as `DetachedSteps` knows it: a flag, and when a step last looked at it."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.last_sign = 0.0
        self.release = threading.Event()
        self.closed = threading.Event()
        self.threads: list[threading.Thread] = []

    def check(self) -> None:
        if self.cancelled.is_set():
            raise CancelledError("the query was cancelled")

    def steps(self, stuck: int) -> Generator[int, None, None]:
        """Numbers; before number `stuck` a call that nobody can ask to stop."""
        try:
            for number in range(3):
                self.threads.append(threading.current_thread())
                if number == stuck:
                    assert self.release.wait(30)
                yield number
        finally:
            self.closed.set()

    def apart(self, stuck: int = -1) -> DetachedSteps[int]:
        return DetachedSteps(self.steps(stuck), self.check, self.cancelled.set, lambda: self.last_sign)


@pytest.fixture
def query(monkeypatch: pytest.MonkeyPatch) -> Iterator[Query]:
    monkeypatch.setattr(steps_apart, "_GRACE_S", 0.02)
    monkeypatch.setattr(steps_apart, "_left", [])
    made = Query()
    yield made
    made.release.set()


def test_all_steps_in_order(query: Query) -> None:
    steps = query.apart()
    assert list(steps) == [0, 1, 2]
    assert threading.current_thread() not in query.threads
    steps.close()
    assert list(steps) == []


def test_closing_ends_the_generator(query: Query) -> None:
    steps = query.apart()
    next(steps)
    steps.close()
    assert query.closed.is_set()


def test_an_error_of_a_step_is_raised_where_it_is_waited_for(query: Query) -> None:
    def failing() -> Generator[int, None, None]:
        yield 1
        raise GpuError("it failed")

    steps = DetachedSteps(failing(), query.check, query.cancelled.set, time.monotonic)
    assert next(steps) == 1
    with pytest.raises(GpuError, match="it failed"):
        next(steps)


def test_a_cancelled_query_does_not_wait_for_a_call_that_goes_on(query: Query) -> None:
    steps = query.apart(stuck=1)
    assert next(steps) == 0
    threading.Timer(0.05, query.cancelled.set).start()
    with pytest.raises(CancelledError):
        next(steps)
    assert not query.closed.is_set()  # the call still runs
    steps.close()  # does not wait for it either
    assert list(steps) == []
    query.release.set()
    assert query.closed.wait(30)  # by the thread that was left, once it came back


def test_ctrl_c_leaves_a_call_that_goes_on(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    steps = DetachedSteps(query.steps(0), interrupted, query.cancelled.set, lambda: 0.0)
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    assert query.cancelled.is_set()


def test_a_call_that_never_comes_back_is_an_error(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps_apart, "STEP_DEADLINE_S", 0.05)
    steps = query.apart(stuck=0)
    with pytest.raises(GpuError, match="have not come back for"):
        next(steps)
    assert query.cancelled.is_set()


def test_a_step_that_shows_life_is_waited_for(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps_apart, "STEP_DEADLINE_S", 0.05)
    signs = 0

    def last_sign() -> float:
        nonlocal signs
        signs += 1
        if signs == 10:
            query.release.set()
        return time.monotonic()

    steps = DetachedSteps(query.steps(0), query.check, query.cancelled.set, last_sign)
    assert next(steps) == 0
    assert signs == 10


def test_what_was_left_is_waited_for_at_exit_but_not_for_ever(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps_apart, "_EXIT_S", 0.05)
    steps = query.apart(stuck=0)
    query.cancelled.set()
    with pytest.raises(CancelledError):
        next(steps)
    steps_apart._wait_at_exit()
    assert not steps_apart._left[0].ended.is_set()
    query.release.set()
    steps_apart._wait_at_exit()
    assert steps_apart._left[0].ended.wait(30)


def test_threads_are_used_again(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_threads, "_idle", [])
    assert list(query.apart()) == list(query.apart()) == [0, 1, 2]
    assert len(set(query.threads)) <= 2  # the next step may come before a thread is idle again
