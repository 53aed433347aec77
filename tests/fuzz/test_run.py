"""The short forms of `make fuzz`, and that each kind finds what is planted."""

import json
import os
import re
from contextlib import closing
from pathlib import Path

import pytest

import bamquery
from bamquery.errors import StorageError
from bamquery.storage.files.filesystem import PosixFileSystem
from bamquery.storage.readers.native_reader import NativeReader
from bamquery.storage.tables import optimize
from bamquery.storage.tables import writer as table_writer
from bamquery.storage.tables.folder import NO_VERSION, TableFolder
from tests.fuzz.cases import FailureError
from tests.fuzz.damaged_databases import DamagedDatabases
from tests.fuzz.damaged_files import DamagedFiles
from tests.fuzz.kills import Ledger, kill_repeatedly, verify
from tests.fuzz.ledger_writer import SHARED, Writer, batch_sql
from tests.fuzz.run import Worker, run_cases


@pytest.fixture(autouse=True)
def settings_of_writers():
    """Cases make fragments small for the process they run in."""
    modules = [(table_writer, "FRAGMENT_BYTES"), (table_writer, "MERGED_APPENDS"), (optimize, "COMPACT_ROWS")]
    before = [(module, name, getattr(module, name)) for module, name in modules]
    yield
    for module, name, value in before:
        setattr(module, name, value)


@pytest.mark.parametrize(("kind", "count"), [("databases", 6), ("files", 20), ("statements", 60)])
def test_a_few_cases_of_each_kind(kind, count):
    tally = run_cases(kind, count, seed=1, jobs=2 if kind == "files" else 1)
    assert tally.failures == []
    assert tally.ends.total() == count
    assert tally.ends["fine"] < count


def test_a_few_kills():
    assert "2 processes killed" in kill_repeatedly(2, seed=1)


@pytest.mark.parametrize("kind", ["databases", "files", "statements"])
def test_a_worker_has_few_threads_however_many_cores_there_are(monkeypatch, kind):
    """As on a machine of 32 cores, where threads alone would take the address space that it has."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_IO_THREADS"):
        monkeypatch.setenv(name, "32")
    worker = Worker(kind)
    try:
        assert [worker.run(seed, 60.0)["failure"] for seed in range(3)] == [""] * 3
        status = Path(f"/proc/{worker._process.pid}/status").read_text()
    finally:
        worker.close()
    numbers = {name: int(value) for name, value in re.findall(r"(Threads|VmPeak):\s*(\d+)", status)}
    assert numbers["Threads"] <= 16
    assert numbers["VmPeak"] < 4 << 20  # KiB


def test_a_case_that_takes_too_long_is_a_failure_and_others_go_on():
    tally = run_cases("databases", 2, seed=1, jobs=1, deadline=0.0)
    assert [what.partition(":")[0] for _, what, _ in tally.failures] == ["hang"] * 2
    assert "databases 2: hang" in tally.report()


def found(make, kind):
    """Whether one of the first cases fails in that way."""
    with closing(make()) as cases:
        for seed in range(200):
            try:
                cases.run(seed)
            except FailureError as error:
                if str(error).startswith(kind):
                    return True
    return False


def test_a_checksum_that_is_not_compared_is_found(monkeypatch):
    real = NativeReader.read_ranges

    def careless(self, offsets, lengths, counters, checksums=None):
        return real(self, offsets, lengths, counters)

    monkeypatch.setattr(NativeReader, "read_ranges", careless)
    assert found(DamagedDatabases, "wrong")


def test_damage_that_check_does_not_see_is_found(monkeypatch):
    monkeypatch.setattr("bamquery.storage.fragments.fragment.check_fragment", lambda fragment: [])
    assert found(DamagedDatabases, "unseen")


def test_a_table_that_is_lost_without_a_word_is_found(monkeypatch):
    monkeypatch.setattr(TableFolder, "latest", lambda folder: max(folder.versions(), default=NO_VERSION))
    assert found(DamagedDatabases, "wrong")


def test_an_error_of_another_class_is_found(monkeypatch):
    monkeypatch.setattr("bamquery.storage.ingest.parquet.source.READ_ERRORS", ())
    assert found(DamagedFiles, "internal")


def written(folder, steps):
    """What two writers' steps leave, in this process, and what their ledger says."""
    ledger = Ledger()
    with bamquery.connect(folder / "db") as con:
        con.execute(f"CREATE TABLE {SHARED} AS {batch_sql(0)} LIMIT 0")
        for name in ("p", "q"):
            path = folder / name
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            writer = Writer(con, descriptor, name, ord(name), {})
            for _ in range(steps):
                try:
                    writer.step()
                except StorageError:
                    break
            os.close(descriptor)
            ledger.hear(name, path.read_text())
    return ledger


def test_a_commit_that_is_acknowledged_and_lost_is_found(tmp_path, monkeypatch):
    real, count = PosixFileSystem.publish, []

    def forgetful(self, source, target):
        count.append(target)
        if len(count) != 12:
            real(self, source, target)

    monkeypatch.setattr(PosixFileSystem, "publish", forgetful)
    ledger = written(tmp_path, 25)
    monkeypatch.undo()
    with pytest.raises(AssertionError):
        verify(tmp_path / "db", ledger)


def test_what_is_written_is_what_the_ledger_says_and_half_a_batch_is_found(tmp_path):
    ledger = written(tmp_path, 25)
    assert ledger.acknowledged > 20
    verify(tmp_path / "db", ledger)
    with bamquery.connect(tmp_path / "db") as con:
        con.execute(f"INSERT INTO {SHARED} {batch_sql(11)} LIMIT 5")
    ledger.hear("p", json.dumps({"kind": "end", "batch": 11}) + "\n")
    with pytest.raises(AssertionError, match="half there"):
        verify(tmp_path / "db", ledger)
