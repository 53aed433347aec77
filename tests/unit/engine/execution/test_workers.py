"""A query's threads: as many as it may use, those that are there already; nothing goes on afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from textwrap import dedent

import pytest

from bamquery.engine.execution import kept_threads, workers
from bamquery.engine.execution.workers import QueryWorkers
from bamquery.statement_context.thread_budget import ThreadBudget


def _workers(threads: int) -> QueryWorkers:
    return QueryWorkers(threads, ThreadBudget(threads), nullcontext)


def test_all_is_done_by_so_many_threads() -> None:
    own, together, most = _workers(3), 0, 0
    lock, barrier, done = threading.Lock(), threading.Barrier(3), threading.Event()
    threads: set[int] = set()

    def task() -> None:
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
            threads.add(threading.get_ident())
        barrier.wait(30)
        with lock:
            together -= 1

    for _ in range(30):
        own.hand_over(task)
    own.hand_over(done.set)
    assert done.wait(30)
    own.close()
    assert most == 3
    assert len(threads) <= 4  # one may be kept while its successor begins
    assert own._budget.free == 3


def test_threads_of_one_query_are_those_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_threads, "_idle", [])
    seen: list[int] = []
    for _ in range(20):
        own, done = _workers(1), threading.Event()
        own.hand_over(lambda: seen.append(threading.get_ident()))
        own.hand_over(done.set)
        assert done.wait(30)
        own.close()
    assert len(set(seen)) <= 2


def test_what_has_not_begun_does_not_begin_any_more() -> None:
    own, begun, free = _workers(1), threading.Event(), threading.Event()
    later: list[int] = []

    def first() -> None:
        begun.set()
        free.wait(30)

    own.hand_over(first)
    assert begun.wait(30)
    own.hand_over(lambda: later.append(1))
    closing = threading.Thread(target=own.close)
    closing.start()
    until = time.monotonic() + 30
    while not own._closed and time.monotonic() < until:
        time.sleep(0.001)
    own.hand_over(lambda: later.append(2))
    assert closing.is_alive()  # the first is in work
    free.set()
    closing.join(30)
    assert not closing.is_alive()
    assert not later


def test_a_task_that_raises_ends_nothing_else() -> None:
    own, done = _workers(1), threading.Event()

    def fails() -> None:
        raise SystemExit

    own.hand_over(fails)
    own.hand_over(done.set)
    assert done.wait(30)
    own.close()


def test_no_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever handed over does it."""

    def refuse(task: object) -> None:
        raise RuntimeError("can't start new thread")

    own = _workers(2)
    with monkeypatch.context() as patch:
        patch.setattr(workers, "run_on_thread", refuse)
        own.hand_over(lambda: None)
    assert not own._asked
    own.close()


@pytest.mark.parametrize("when", ["before", "after"])
def test_ctrl_c_while_a_thread_is_asked(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it comes or not, the query ends."""

    def interrupted(task: Callable[[], object]) -> None:
        if when == "after":
            kept_threads.run_on_thread(task)
        raise KeyboardInterrupt

    own = _workers(1)
    with monkeypatch.context() as patch:
        patch.setattr(workers, "run_on_thread", interrupted)
        with pytest.raises(KeyboardInterrupt):
            own.hand_over(lambda: None)
    closing = threading.Thread(target=own.close, daemon=True)
    closing.start()
    closing.join(30)
    assert not closing.is_alive()


def test_in_a_child_process() -> None:
    own, done = _workers(1), threading.Event()
    own.hand_over(done.set)
    assert done.wait(30)
    own.close()
    child = os.fork()
    if child == 0:
        own, done = _workers(1), threading.Event()
        own.hand_over(done.set)
        os._exit(0 if done.wait(30) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_interpreter_ends_with_queries_that_nobody_has_closed() -> None:
    program = """
        import time
        from contextlib import nullcontext
        from bamquery.engine.execution.workers import QueryWorkers
        from bamquery.statement_context.thread_budget import ThreadBudget

        own = QueryWorkers(1, ThreadBudget(1), nullcontext)
        own.hand_over(lambda: (time.sleep(0.3), print("ended", flush=True)))
        own.hand_over(lambda: print("begun", flush=True))
        time.sleep(0.1)
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")
