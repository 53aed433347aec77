"""The thread behind bars and callbacks: when it looks, and when it is there at all."""

import gc
import os
import threading
import warnings

import pytest

from bamquery.session.progress import ticker as ticker_module
from bamquery.session.progress.terminal import TERMINAL
from bamquery.session.progress.ticker import TICKER, Ticker
from tests.unit.face.progress.gates import Gate, Taking


class Query:
    number = 1


class Watcher:
    def __init__(self, delay, interval):
        self.delay, self.interval = delay, interval
        self.looks = []

    def look(self, query):
        self.looks.append(query)

    def hide(self, query):
        pass


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def without_thread(monkeypatch):
    """A ticker whose thread ends at once: the test ticks."""
    monkeypatch.setattr(Ticker, "_run", lambda self: None)
    clock = Clock()
    return Ticker(clock), clock


def test_looks_come_after_the_delay_and_then_at_intervals(without_thread):
    ticker, clock = without_thread
    slow, fast, query = Watcher(1.0, 0.5), Watcher(0.25, 0.25), Query()
    ticker.add(query, slow)
    ticker.add(query, fast)
    for wait, counts in [(0.25, (0, 0)), (0.25, (0, 1)), (0.25, (0, 2)), (0.25, (0, 3)), (0.25, (1, 4))]:
        assert ticker.tick() == pytest.approx(wait)
        assert (len(slow.looks), len(fast.looks)) == counts
        clock.now += 0.25
    ticker.remove(query)
    clock.now += 10
    assert ticker.tick() == 1.0
    assert (len(slow.looks), len(fast.looks)) == (1, 4)


def test_a_tick_that_comes_late_looks_once(without_thread):
    ticker, clock = without_thread
    watcher = Watcher(0.1, 0.1)
    ticker.add(Query(), watcher)
    clock.now += 60
    ticker.tick()
    assert len(watcher.looks) == 1


def test_queries_that_nobody_watches_start_no_thread(con, monkeypatch):
    monkeypatch.setattr(ticker_module.Ticker, "add", lambda *_: pytest.fail("it was watched"))
    assert con.sql("SELECT 1").fetchall() == [(1,)]


def test_the_thread_goes_with_the_last_query(con):
    called = threading.Event()
    gate = Gate(con)
    with con.on_progress(lambda progress: called.set(), interval=0.01):
        taking = Taking(con.sql("SELECT x FROM gated").run())
        assert called.wait(60)
        (thread,) = [one for one in threading.enumerate() if one.name == "bamquery-progress"]
        assert thread.daemon
        gate.open()
        taking.finish()
    thread.join(60)
    assert not thread.is_alive()
    assert not TICKER._watches


def test_an_abandoned_query_is_not_watched(con):
    with con.on_progress(lambda progress: None):
        result = con.sql("SELECT x FROM range(1000000) r(x)").run()
        next(result)
        assert TICKER._watches
        del result
        gc.collect()
        assert not TICKER._watches


def test_a_forked_process_has_a_ticker_of_its_own(con):
    """Neither the thread nor whoever held its locks is there."""
    gate = Gate(con)
    called = threading.Event()
    with con.on_progress(lambda progress: called.set(), interval=0.01):
        taking = Taking(con.sql("SELECT x FROM gated").run())
        assert called.wait(60)
        with TICKER._lock, TERMINAL._lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, from 3.12 on
            child = os.fork()
        if not child:
            free = TICKER._lock.acquire(timeout=5) and TERMINAL._lock.acquire(timeout=5)
            os._exit(0 if free and not TICKER._watches and TICKER._thread is None else 1)
        gate.open()
        taking.finish()
    assert os.waitpid(child, 0)[1] == 0
