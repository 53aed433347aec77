"""Functions that hear of progress."""

import threading

import pytest

import bamquery
from tests.unit.face.progress.gates import BATCHES, ROWS, Gate, Taking


def test_it_hears_of_a_query_until_its_end(con):
    seen, gate = [], Gate(con)
    heard = threading.Event()

    def callback(progress):
        seen.append((progress, threading.current_thread()))
        heard.set()

    callback_of = con.on_progress(callback, interval=0.01)
    result = con.sql("SELECT x FROM gated").run()
    taking = Taking(result)
    for _ in range(3):
        heard.clear()
        assert heard.wait(60)
        gate.open(1)
    gate.open()
    taking.finish()
    count = len(seen)
    assert taking.rows == BATCHES * ROWS
    assert len({progress.query for progress, _ in seen}) == 1
    assert [progress.rows for progress, _ in seen] == sorted(progress.rows for progress, _ in seen)
    assert not any(progress.finished for progress, _ in seen[:-1])
    assert threading.main_thread() not in {thread for _, thread in seen}
    assert len(seen) == count
    callback_of.remove()
    callback_of.remove()


def test_removed_it_hears_nothing(con):
    gate = Gate(con)
    with con.on_progress(lambda progress: pytest.fail("it was called"), interval=0.01):
        pass
    taking = Taking(con.sql("SELECT x FROM gated").run())
    gate.open()
    taking.finish()
    assert taking.error is None


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_what_it_raises_stops_the_query_and_is_raised_there(con, error):
    gate = Gate(con)
    raised = threading.Event()

    def callback(progress):
        raised.set()
        raise error("from the callback")

    with con.on_progress(callback, interval=0.01):
        taking = Taking(con.sql("SELECT x FROM gated").run())
        assert raised.wait(60)
        gate.open()
        taking.finish()
    assert isinstance(taking.error, error)
    assert con.sql("SELECT 1").fetchall() == [(1,)]


def test_it_may_interrupt(con):
    gate = Gate(con)
    interrupted = threading.Event()

    def callback(progress):
        con.interrupt()
        interrupted.set()

    with con.on_progress(callback, interval=0.01):
        taking = Taking(con.sql("SELECT x FROM gated").run())
        assert interrupted.wait(60)
        gate.open()
        taking.finish()
    assert isinstance(taking.error, bamquery.CancelledError)


def test_concurrent_queries_have_numbers(con):
    gates, takings, seen = [], [], set()
    both = threading.Event()

    def callback(progress):
        seen.add(progress.query)
        if len(seen) == 2:
            both.set()

    with con.on_progress(callback, interval=0.01):
        for _ in range(2):
            gates.append(Gate(con))
            takings.append(Taking(con.sql("SELECT x FROM gated").run()))
        assert both.wait(60)
        for gate, taking in zip(gates, takings, strict=True):
            gate.open()
            taking.finish()


def test_it_hears_of_what_is_written(con, tmp_path):
    heard, gate = threading.Event(), Gate(con)
    failures = []

    def write():
        try:
            con.sql("CREATE TABLE t AS SELECT x FROM gated")
        except BaseException as error:
            failures.append(error)

    with con.on_progress(lambda progress: heard.set(), interval=0.01):
        writing = threading.Thread(target=write, daemon=True)
        writing.start()
        assert heard.wait(60)
        gate.open()
        writing.join(60)
    assert not failures
    assert con.sql("SELECT count(*) FROM t").fetchall() == [(BATCHES * ROWS,)]


def test_arguments(con):
    with pytest.raises(TypeError, match="callback is a function of one argument, not int"):
        con.on_progress(3)
    with pytest.raises(TypeError, match="interval is a number of seconds, not str"):
        con.on_progress(print, interval="1")
    for interval in (0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"interval is 0\.01 seconds or more"):
            con.on_progress(print, interval=interval)
    con.close()
    with pytest.raises(bamquery.BamQueryError, match="closed"):
        con.on_progress(print)


def test_a_file_that_is_written_has_a_bar_of_its_own(con, tmp_path, monkeypatch):
    """What takes its time is the writing: the caller waits until the last batch is written."""
    gate, heard, results = Gate(con), threading.Event(), []
    run = con._session.run

    def keep(plan, *rest):
        results.append(run(plan, *rest))
        return results[-1]

    monkeypatch.setattr(con._session, "run", keep)
    path = tmp_path / "x.csv"
    copying = threading.Thread(target=lambda: con.sql(f"COPY (FROM gated) TO '{path}'"), daemon=True)
    with con.on_progress(lambda progress: heard.set(), interval=0.01):
        copying.start()
        assert heard.wait(60)
        [result] = results
        assert result.running.description == f"Writing {path}"
        assert result.running.called_for is not None
        gate.open()
        copying.join(60)
    assert path.read_text().count("\n") == BATCHES * ROWS + 1
