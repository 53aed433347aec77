"""Questions in the middle of long steps, and calls that are left to themselves."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.engine.cpu import kernels
from bamquery.errors import CancelledError
from bamquery.statement_context.cancellation import check_cancelled, interruptible, use_cancellation_check

SECONDS = 60.0
"""Until what waits for something gives up."""


def go_on() -> None:
    pass


def stop() -> None:
    raise CancelledError("stop")


class Questions:
    """Answers a few of them with going on."""

    def __init__(self, allowed: int) -> None:
        self.left = allowed

    def __call__(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise CancelledError("stop")


def calls_left() -> bool:
    """Whether a call of a cancelled query has not come to its end."""
    return any(thread.name == "bamquery-call" for thread in threading.enumerate())


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """What calls wait for; afterwards none is left."""
    event = threading.Event()
    yield event
    event.set()
    for thread in threading.enumerate():
        if thread.name == "bamquery-call":
            thread.join(SECONDS)
    assert not calls_left()


def test_questions_are_those_of_the_thread() -> None:
    check_cancelled()
    with use_cancellation_check(stop):
        with use_cancellation_check(go_on):
            check_cancelled()
        with pytest.raises(CancelledError):
            check_cancelled()
        other = threading.Thread(target=check_cancelled)
        other.start()
        other.join(SECONDS)
    check_cancelled()


def test_outside_of_queries_calls_stay_on_their_thread() -> None:
    assert interruptible(threading.get_ident) == threading.get_ident()


def test_answers_and_errors_of_calls() -> None:
    def fail(what: str) -> None:
        raise pa.ArrowInvalid(what)

    with use_cancellation_check(go_on):
        assert interruptible(threading.get_ident) != threading.get_ident()
        assert interruptible(divmod, 17, 5) == (3, 2)
        with pytest.raises(pa.ArrowInvalid, match="no such thing"):
            interruptible(fail, "no such thing")


def test_nothing_begins_after_the_end_of_a_query() -> None:
    begun: list[int] = []
    with use_cancellation_check(stop), pytest.raises(CancelledError):
        interruptible(begun.append, 1)
    assert begun == []


def test_a_call_is_left_where_the_query_is_cancelled(released: threading.Event) -> None:
    with use_cancellation_check(Questions(3)), pytest.raises(CancelledError):
        interruptible(released.wait, SECONDS)
    assert calls_left()


def test_a_call_is_left_where_somebody_presses_ctrl_c(released: threading.Event) -> None:
    def call() -> None:
        signal.raise_signal(signal.SIGINT)
        released.wait(SECONDS)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background job ignores
    try:
        with use_cancellation_check(go_on), pytest.raises(KeyboardInterrupt):
            interruptible(call)
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls_left()


NUMBERS = pa.array(np.arange(10_000), pa.int64())
FLAGS = pa.array([True] * 10_000)


@pytest.mark.parametrize(
    "call",
    [
        lambda: kernels.compute("dictionary_encode", NUMBERS),
        lambda: kernels.concatenate([NUMBERS, NUMBERS]),
        lambda: kernels.take(NUMBERS, NUMBERS),
        lambda: kernels.take(NUMBERS, np.arange(10)),
        lambda: kernels.take_present(NUMBERS, NUMBERS),
        lambda: kernels.filter_batch(pa.record_batch({"0": NUMBERS}), FLAGS),
        lambda: kernels.sorted_places([NUMBERS], ["descending"]),
    ],
)
def test_calls_over_much_data_can_be_left(call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []

    def left(function: Callable[..., Any], *arguments: Any) -> Any:
        called.append(function)
        return function(*arguments)

    monkeypatch.setattr(kernels, "interruptible", left)
    few = call()
    assert called == []
    monkeypatch.setattr(kernels, "_LONG", 50_000)
    monkeypatch.setattr(kernels, "_LONG_SORT", 50_000)
    assert call() == few
    assert len(called) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT mode(s) FROM t",
        "SELECT string_agg(s, ',') FROM t",
        "SELECT quantile_disc(s, 0.5) FROM t",
        "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY s DESC) AS r FROM t)",
        "SELECT count(DISTINCT s) FROM t",
    ],
)
def test_queries_with_every_call_on_another_thread(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with bamquery.connect(threads=2) as con:
        con.sql("CREATE TABLE t AS SELECT md5((i % 700)::VARCHAR) AS s FROM range(2000) r(i)")
        expected = con.sql(sql).fetchall()
        monkeypatch.setattr(kernels, "_LONG", 0)
        monkeypatch.setattr(kernels, "_LONG_SORT", 0)
        assert con.sql(sql).fetchall() == expected


PROGRAM = """
import threading
from bamquery.command_line import main as command_line
from bamquery.statement_context.cancellation import interruptible, use_cancellation_check

def main(arguments):
    def check():
        if begun.is_set():
            raise KeyboardInterrupt
    def call():
        begun.set()
        print("at work")
        threading.Event().wait(600)
    begun = threading.Event()
    try:
        with use_cancellation_check(check):
            interruptible(call)
    except KeyboardInterrupt:
        return command_line.INTERRUPTED

command_line.main = main
command_line.run()
"""


def test_the_command_does_not_wait_for_calls_that_were_left() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "at work\n", "")
