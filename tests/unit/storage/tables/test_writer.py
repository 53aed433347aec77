import gc
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bamquery.errors import ConflictError, StorageError
from bamquery.storage.database.database import Database
from bamquery.storage.tables import background, transaction
from bamquery.storage.tables import writer as table_writer
from bamquery.storage.tables.manifest import MAX_FRAGMENT_ROWS
from tests.unit.storage.sample_tables import SCHEMA, append, batch, create, rows_of, values_of

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def database(tmp_path):
    with Database.open(tmp_path / "db") as database:
        yield database


def fragment_rows(database, name="t"):
    with database.table(name).snapshot() as snapshot:
        return [entry.rows for entry in snapshot.entries]


def test_rows_are_cut_into_fragments_of_whole_vectors(database, monkeypatch):
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 8 * 5000)
    create(database, "t", list(range(23_000)))
    assert fragment_rows(database) == [4096] * 5 + [2520]
    assert values_of(database, "t") == list(range(23_000))


@pytest.mark.parametrize("step", [1, 7, 999, 1000, 1023, 1024, 1025, 4999, 5000, 5001])
def test_batches_of_any_size_make_the_same_rows(database, monkeypatch, step):
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 8 * 5000)
    with database.create_table("t", SCHEMA) as writer:
        for start in range(0, 12_000, step):
            writer.write(batch(range(start, min(start + step, 12_000))))
        assert writer.rows == 12_000
        writer.commit()
    assert values_of(database, "t") == list(range(12_000))
    *full, last = fragment_rows(database)
    assert len(full) < 3
    assert all(4096 <= count <= 5120 for count in full), "5000, or where the vector ends"
    assert 5000 % step or set(full) == {5000}, "no batch is cut that fits"
    assert 0 < last <= 5120


def test_a_fragment_has_at_most_so_many_rows(database, monkeypatch):
    monkeypatch.setattr(table_writer, "MAX_FRAGMENT_ROWS", 2048)
    schema = pa.schema([("b", pa.bool_())])
    with database.create_table("t", schema) as writer:
        for count in (5000, 1000, 1000):
            writer.write(pa.record_batch([pa.array([True] * count)], schema=schema))
        writer.commit()
    assert fragment_rows(database) == [2048, 2048, 2048, 856]
    assert MAX_FRAGMENT_ROWS == 64 << 20


def test_rows_larger_than_a_fragment(database, monkeypatch):
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 1000)
    schema = pa.schema([("s", pa.large_string())])
    text = pa.record_batch([pa.array(["x" * 5000, None, "y" * 5000], pa.large_string())], schema=schema)
    with database.create_table("t", schema) as writer:
        writer.write(text)
        writer.write(text)
        writer.commit()
    with database.table("t").snapshot() as snapshot:
        assert rows_of(snapshot)["s"].to_pylist() == text["s"].to_pylist() * 2


def test_dictionaries_that_batches_share_do_not_fill_fragments(database, monkeypatch):
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 100_000)
    schema = pa.schema([("d", pa.dictionary(pa.int32(), pa.large_string()))])
    dictionary = pa.array([f"value {i}" * 10 for i in range(5000)], pa.large_string())
    with database.create_table("t", schema) as writer:
        for start in range(20):
            indices = pa.array([start, None, start + 1], pa.int32())
            array = pa.DictionaryArray.from_arrays(indices, dictionary)
            writer.write(pa.record_batch([array], schema=schema))
        writer.commit()
    assert fragment_rows(database) == [60]
    with database.table("t").snapshot() as snapshot:
        values = rows_of(snapshot)["d"].to_pylist()
    assert values[:3] == [dictionary[0].as_py(), None, dictionary[1].as_py()]


def test_other_columns_are_refused(database):
    with database.create_table("t", SCHEMA) as writer:
        for wrong in (
            pa.record_batch([pa.array([1], pa.int32())], names=["a"]),
            pa.record_batch([pa.array([1])], names=["b"]),
            pa.record_batch([pa.array([1]), pa.array([1])], names=["a", "b"]),
        ):
            columns = ", ".join(f"{field.name} {field.type}" for field in wrong.schema)
            message = f'rows for table "t" have columns ({columns}), not (a int64)'
            with pytest.raises(StorageError, match=re.escape(message)):
                writer.write(wrong)
        writer.write(batch([1]))
        writer.commit()
    assert values_of(database, "t") == [1]


def test_a_writer_is_used_once(database):
    with database.create_table("t", SCHEMA) as writer:
        writer.commit()
        for action in (lambda: writer.write(batch([1])), writer.commit):
            with pytest.raises(StorageError, match="closed"):
                action()
        writer.abort()
    assert values_of(database, "t") == []


def test_after_an_abort_nothing_is_left(database, monkeypatch):
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 8 * 1024)
    create(database, "t", [1])
    before = sorted(database.path.rglob("*"))
    writer = database.table("t").append()
    writer.write(batch(range(10_000)))
    writer.abort()
    writer.abort()
    assert sorted(database.path.rglob("*")) == before
    with pytest.raises(StorageError, match="closed"):
        writer.commit()


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_writer_that_is_done_keeps_no_rows(database, end):
    create(database, "t", [1])
    values = np.arange(1000)
    held = weakref.ref(values)
    writer = database.table("t").append()
    writer.write(pa.record_batch([pa.array(values)], schema=SCHEMA))
    del values
    assert held() is not None
    getattr(writer, end)()
    gc.collect()
    assert held() is None


def test_leaving_without_commit_is_an_abort(database):
    create(database, "t", [1])
    with database.table("t").append() as writer:
        writer.write(batch([2]))
    assert values_of(database, "t") == [1]
    assert database.check().litter == []


def test_a_writer_that_was_forgotten_holds_nothing(database, monkeypatch):
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 8 * 1024)
    create(database, "t", [1])
    writer = database.table("t").append()
    writer.write(batch(range(10_000)))
    writer._background.settle()
    del writer
    gc.collect()
    assert database.vacuum().in_use == []
    assert database.check().litter == []
    assert values_of(database, "t") == [1]


def test_at_most_one_fragment_is_written_while_the_next_fills(database, monkeypatch):
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 8 * 1024)
    real = transaction.write_fragment
    gate = threading.Event()
    started = []

    def slow(*arguments, **options):
        started.append(arguments[2])
        gate.wait(30)
        return real(*arguments, **options)

    monkeypatch.setattr(transaction, "write_fragment", slow)
    with database.create_table("t", SCHEMA) as writer:
        writer.write(batch(range(1024)))  # is written
        writer.write(batch(range(1024, 2047)))  # fills the next meanwhile
        threading.Timer(0.3, gate.set).start()
        assert not gate.is_set()
        writer.write(batch(range(2047, 2048)))  # has to wait
        assert gate.is_set()
        writer.commit()
    assert values_of(database, "t") == list(range(2048))


def test_a_failure_in_the_background_is_raised_by_the_next_call_and_by_commit(database, monkeypatch):
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 8 * 1024)

    def fail(*_, **__):
        raise StorageError("the disk is on fire", "/dev/fire")

    create(database, "t", [1])
    monkeypatch.setattr(transaction, "write_fragment", fail)
    with database.table("t").append() as writer:
        writer.write(batch(range(1024)))
        with pytest.raises(StorageError, match="on fire"):
            writer.write(batch(range(1024)))
        with pytest.raises(StorageError, match="on fire"):
            writer.commit()
    assert values_of(database, "t") == [1]


def test_a_failed_commit_removes_its_files(database):
    create(database, "t", [1])
    writer = database.table("t").append()
    writer.write(batch([2]))
    append(database, "t", [3])
    before = sorted(database.path.rglob("*"))
    with pytest.raises(ConflictError):
        writer.commit()
    assert sorted(database.path.rglob("*")) == before


def test_many_small_appends_are_merged_as_they_come(database, monkeypatch):
    monkeypatch.setattr(table_writer, "MERGED_APPENDS", 9)
    create(database, "t", [0])
    for number in range(1, 100):
        append(database, "t", [number])
        assert len(fragment_rows(database)) <= 9
    assert values_of(database, "t") == list(range(100))
    database.vacuum()
    assert database.check().clean


def test_large_fragments_are_not_merged_by_appends(database, monkeypatch):
    monkeypatch.setattr(table_writer, "MERGED_APPENDS", 3)
    monkeypatch.setattr(table_writer, "SMALL_ROWS", 10)
    create(database, "t", range(10))
    for _ in range(2):
        append(database, "t", [1])
    append(database, "t", range(10))
    for _ in range(3):
        append(database, "t", [1])
    assert fragment_rows(database) == [10, 1, 1, 10, 1, 1, 1]
    append(database, "t", [1])
    assert fragment_rows(database) == [10, 1, 1, 10, 4]


def test_an_append_that_is_still_being_written_merges_nothing(database, monkeypatch):
    """Its first fragment would come after the rows that follow on it: the writer waits to know of it."""
    monkeypatch.setattr(table_writer, "MERGED_APPENDS", 2)
    create(database, "t", [0])
    append(database, "t", [1])
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 8 * 1024)
    looked = threading.Event()
    write_fragment, is_small = transaction.write_fragment, table_writer._is_small

    def write_late(*arguments, **options):
        looked.wait(0.2)  # which passes, unless somebody has decided meanwhile
        return write_fragment(*arguments, **options)

    def look(entry):
        looked.set()
        return is_small(entry)

    monkeypatch.setattr(transaction, "write_fragment", write_late)
    monkeypatch.setattr(table_writer, "_is_small", look)
    append(database, "t", range(2, 1030))
    assert values_of(database, "t") == list(range(1030))
    assert fragment_rows(database) == [1, 1, 1024, 4]


def test_appends_of_many_bytes_merge_nothing(database, monkeypatch):
    monkeypatch.setattr(table_writer, "MERGED_APPENDS", 3)
    monkeypatch.setattr(table_writer, "SMALL_BYTES", 8 << 13)
    create(database, "t", [1])
    for _ in range(2):
        append(database, "t", [1])
    append(database, "t", range(1 << 13))
    assert fragment_rows(database) == [1, 1, 1, 1 << 13]
    database.drop_table("t")
    create(database, "t", [1])
    for _ in range(2):
        append(database, "t", [1])
    append(database, "t", range((1 << 13) - 1))
    assert fragment_rows(database) == [(1 << 13) + 2]


def test_rows_can_be_added_beside_damaged_ones(database, monkeypatch):
    monkeypatch.setattr(table_writer, "MERGED_APPENDS", 3)
    create(database, "t", [1])
    append(database, "t", [2])
    append(database, "t", [3])
    with database.table("t").snapshot() as snapshot:
        path = snapshot.fragments[1].path
    data = bytearray(path.read_bytes())
    data[4096] ^= 1
    path.write_bytes(data)
    append(database, "t", [4])
    assert fragment_rows(database) == [1, 1, 1, 1]
    report = database.check()
    assert {error.path for error in report.errors} == {path}
    assert report.litter == []


def test_memory_is_that_of_two_fragments(tmp_path):
    code = """
import sys
import numpy as np, pyarrow as pa
from bamquery.storage.database.database import Database
from tests.peak_memory import peak_bytes
schema = pa.schema([("a", pa.int64()), ("b", pa.float64())])
with Database.open(sys.argv[1]) as database, database.create_table("t", schema) as writer:
    before = peak_bytes()
    for start in range(0, 80_000_000, 100_000):
        ids = np.arange(start, start + 100_000)
        writer.write(pa.record_batch([ids, ids / 7], schema=schema))
    writer.commit()
    print(peak_bytes() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "db")], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 2.6 * table_writer.FRAGMENT_BYTES


INTERRUPTED = """
import itertools, os, sys
import numpy as np, pyarrow as pa
from bamquery.storage.database.database import Database
schema = pa.schema([("a", pa.int64()), ("b", pa.float64())])
database = Database.open(sys.argv[1])
with database.table("t").append() as writer:
    for turn in itertools.count():
        ids = np.arange(100_000)
        writer.write(pa.record_batch([ids, ids / 7], schema=schema))
        if turn == 10:
            print("writing", flush=True)
"""


def test_ctrl_c_ends_a_write_at_once_and_leaves_the_last_commit(database):
    schema = pa.schema([("a", pa.int64()), ("b", pa.float64())])
    with database.create_table("t", schema) as writer:
        writer.commit()
    before = sorted(database.path.rglob("*"))
    for delay in (0.1, 0.7, 1.3):
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, str(database.path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline() == "writing\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=30)
        assert messages.strip().endswith("KeyboardInterrupt")
        assert process.returncode == -signal.SIGINT
        database.vacuum()
        assert sorted(database.path.rglob("*")) == before
        assert values_of(database, "t") == []


def test_ctrl_c_while_the_commit_is_under_way_does_not_remove_what_was_published(database, monkeypatch):
    real = background.BackgroundTransaction._publish
    published, gate = threading.Event(), threading.Event()

    def publish(self, *arguments):
        version = real(self, *arguments)
        published.set()
        gate.wait(30)
        return version

    def interrupt():
        published.wait(30)
        # To the waiting thread itself: a signal that another thread takes wakes nobody.
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        gate.set()

    monkeypatch.setattr(background.BackgroundTransaction, "_publish", publish)
    create_now = database.create_table("t", SCHEMA)
    create_now.write(batch([1]))
    # A shell's background job inherits an ignored SIGINT.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt), create_now:
        create_now.commit()
    interrupter.join()
    signal.signal(signal.SIGINT, inherited)
    assert values_of(database, "t") == [1]
    assert database.check().clean


def test_an_abort_does_not_wait_for_a_slow_device(database, monkeypatch):
    real = transaction.write_fragment
    gate = threading.Event()

    def slow(*arguments, **options):
        gate.wait(60)
        return real(*arguments, **options)

    create(database, "t", [1])
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 8 * 1024)
    monkeypatch.setattr(transaction, "write_fragment", slow)
    monkeypatch.setattr(background, "ABORT_SECONDS", 0.05)
    before = sorted(database.path.rglob("*"))
    writer = database.table("t").append()
    writer.write(batch(range(1024)))
    writer.abort()
    assert not gate.is_set()
    assert database.vacuum().in_use == []  # nothing was written yet
    gate.set()
    while any(thread.name.startswith("bamquery-writer") for thread in threading.enumerate()):
        time.sleep(0.01)
    assert sorted(database.path.rglob("*")) == before


def test_an_unlimited_number_of_descriptors_is_not_needed(database):
    create(database, "t", [1])
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Tests before this one may have left some open.
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 20, limits[1]))
    try:
        for number in range(100):
            append(database, "t", [number])
            values_of(database, "t")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert np.sum(fragment_rows(database)) == 101


def test_fragments_are_as_small_as_a_memory_limit_makes_them(database):
    schema = pa.schema([("a", pa.int64())])
    with database.create_table("t", schema) as writer:
        writer.limit_memory(8 << 20)
        for start in range(0, 1_000_000, 100_000):
            writer.write(pa.record_batch([pa.array(range(start, start + 100_000))], schema=schema))
        writer.commit()
        assert len(writer.fragments) == 8
    with database.table("t").snapshot() as snapshot:
        assert max(entry.rows for entry in snapshot.entries) * 8 <= 1 << 20
        assert snapshot.rows == 1_000_000
