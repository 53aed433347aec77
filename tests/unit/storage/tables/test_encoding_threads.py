"""Columns that several threads encode: all of them, once, and as one thread does."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bamquery.errors import CancelledError
from bamquery.storage.files.filesystem import POSIX
from bamquery.storage.fragments.encoded_columns import EncodedRows
from bamquery.storage.fragments.writer import BatchRows, write_fragment
from bamquery.storage.tables.encoding_threads import MOST_STEPPING, EncodingThreads


@pytest.fixture(params=[1, 2, 5])
def threads(request):
    threads = EncodingThreads(request.param)
    yield threads
    threads.close()


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_everything_is_done_once(threads, count):
    done = []
    threads.run_all([partial(done.append, number) for number in range(count)])
    assert sorted(done) == [*range(count)]


def test_several_are_at_work_at_once():
    threads = EncodingThreads(3)
    meeting = threading.Barrier(3, timeout=30)
    threads.run_all([meeting.wait] * 3)
    threads.close()


def test_no_more_than_can_do_something_in_python():
    threads = EncodingThreads(64)
    names = set()
    meeting = threading.Barrier(MOST_STEPPING, timeout=30)

    def meet():
        names.add(threading.get_ident())
        meeting.wait()

    threads.run_all([meet] * (4 * MOST_STEPPING))
    assert len(names) == MOST_STEPPING
    threads.close()


def test_the_first_error_is_raised_once_nobody_works(threads):
    working = []

    def work(number):
        working.append(number)
        try:
            if number in (3, 7):
                raise ValueError(f"number {number}")
        finally:
            working.remove(number)

    with pytest.raises(ValueError, match="number 3"):
        threads.run_all([partial(work, number) for number in range(20)])
    assert working == []
    threads.run_all([partial(working.append, 0)])
    assert working == [0]


def test_nobody_waits_for_others_once_it_is_cancelled():
    """One that is stuck, in a read of a dying disk say, holds up nobody; and nothing more is begun."""
    caller = threading.get_ident()
    cancelled, stuck, go_on = threading.Event(), threading.Event(), threading.Event()
    ended, late = [], []

    def work():
        if threading.get_ident() == caller:
            assert stuck.wait(30)
            cancelled.set()
        else:
            stuck.set()
            go_on.wait(20)
            ended.append(True)

    threads = EncodingThreads(2, cancelled.is_set)
    with pytest.raises(CancelledError):
        threads.run_all([work, work, partial(late.append, True)])
    assert not ended
    go_on.set()
    threads.close()
    assert not late


def test_the_file_is_that_of_one_thread(tmp_path: Path):
    random = np.random.default_rng(9)
    rows = 90_000
    words = np.array(["alpha", "beta", "gamma", "delta", "ümläut", "zeta"])
    texts = [" ".join(words[random.integers(0, 6, n)]) for n in random.integers(0, 9, rows)]
    schema = pa.schema(
        [
            ("number", pa.int64()),
            ("real", pa.float64()),
            ("few", pa.large_string()),
            ("many", pa.large_string()),
            ("nulls", pa.large_string()),
            ("flag", pa.bool_()),
            ("code", pa.dictionary(pa.int32(), pa.large_string())),
        ]
    )
    batches = [
        pa.record_batch(
            [
                pa.array(random.integers(0, 5000, rows)),
                pa.array(random.random(rows)),
                pa.array(words[random.integers(0, 6, rows)], pa.large_string()),
                pa.array([f"{text} {n}" for n, text in enumerate(texts)], pa.large_string()),
                pa.array(
                    [None if n % 7 == 0 else text * 2 + str(n) for n, text in enumerate(texts)],
                    pa.large_string(),
                ),
                pa.array(random.random(rows) < 0.5),
                pa.array(words[random.integers(0, 6, rows)], pa.large_string()).dictionary_encode(),
            ],
            schema=schema,
        )
        for _ in range(3)
    ]
    threads = EncodingThreads(6)
    for name, run_all in (("one", EncodingThreads(1).run_all), ("many", threads.run_all)):
        encoded = EncodedRows(schema)
        for batch in batches:
            encoded.add(BatchRows([batch]), lambda: False, run_all)
        encoded.close(run_all)
        write_fragment(POSIX, tmp_path, name, schema, encoded)
    threads.close()
    for end in ("arrow", "vectors.arrow"):
        assert (tmp_path / f"one.{end}").read_bytes() == (tmp_path / f"many.{end}").read_bytes()
