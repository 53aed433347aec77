import threading
import time

import pyarrow as pa
import pytest

from bamquery.storage.ingest.sources import read_ahead
from bamquery.storage.ingest.sources.read_ahead import ReadAhead

DEADLINE = 30


def batch(rows=1000):
    return pa.record_batch({"a": pa.array(range(rows), pa.int64())})


def wait_until(condition):
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_order_and_end():
    with ReadAhead(pa.record_batch({"a": [i]}) for i in range(100)) as batches:
        assert [b.column(0)[0].as_py() for b in batches] == list(range(100))
        assert next(batches, None) is None


def test_it_reads_ahead_within_its_bytes():
    made = []

    def source():
        for i in range(20):
            made.append(i)
            yield batch()

    with ReadAhead(source(), max_bytes=3 * batch().nbytes) as batches:
        # Three are ready, and one more is made and waits for room.
        wait_until(lambda: len(made) == 4)
        time.sleep(0.02)
        assert len(made) == 4
        assert sum(1 for _ in batches) == 20


def test_a_batch_larger_than_the_limit_passes():
    with ReadAhead(iter([batch(), batch()]), max_bytes=1) as batches:
        assert sum(1 for _ in batches) == 2


def test_errors_come_in_their_place():
    def source():
        yield batch()
        raise ZeroDivisionError

    with ReadAhead(source()) as batches:
        next(batches)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                next(batches)


def test_leaving_closes_the_source_on_its_thread():
    closed = []

    def source():
        try:
            while True:
                yield batch()
        finally:
            closed.append(threading.current_thread().name)

    with ReadAhead(source(), max_bytes=1) as batches:
        next(batches)
    wait_until(lambda: closed)
    assert closed == ["bamquery-read-ahead"]


def test_leaving_does_not_wait_for_a_source_that_hangs(monkeypatch):
    monkeypatch.setattr(read_ahead, "STOP_SECONDS", 0.01)
    release = threading.Event()

    def source():
        yield batch()
        release.wait(DEADLINE)
        yield batch()

    with ReadAhead(source()) as batches:
        next(batches)
    assert not release.is_set()
    release.set()
    wait_until(lambda: not any(t.name == "bamquery-read-ahead" for t in threading.enumerate()))
