"""A full disk: an error that names the path, nothing committed is lost, and with room again work goes on."""

import resource
import subprocess
import sys
from contextlib import contextmanager

import pytest

from bamquery.errors import StorageError
from bamquery.storage.database.database import Database
from bamquery.storage.tables import writer as table_writer
from tests.faults import crash_workload
from tests.faults.crash_replay import DATABASE, scratch
from tests.faults.crash_workload import rows
from tests.faults.failing import FailingFileSystem
from tests.selection.effort import effort


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Let a few rows fill a fragment, and a few appends be merged."""
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", crash_workload.FRAGMENT_BYTES)
    monkeypatch.setattr(table_writer, "MERGED_APPENDS", 2)


STEPS = [
    lambda database: create(database, "a", rows(0, 1500)),
    lambda database: append(database, "a", rows(1500, 1510)),
    lambda database: append(database, "a", rows(1510, 1530)),
    lambda database: append(database, "a", rows(1530, 1540)),
    lambda database: create(database, "a", rows(0, 1600), or_replace=True),
    lambda database: append(database, "a", rows(1600, 1610)),
    lambda database: database.table("a").optimize(),
    lambda database: database.vacuum(),
    lambda database: create(database, "b", rows(0, 10)),
    lambda database: database.drop_table("b"),
    lambda database: database.vacuum(),
    lambda database: create(database, "b", rows(10, 20)),
]


def create(database, name, batch, *, or_replace=False):
    encoding = "auto" if name in crash_workload.ENCODED else "plain"
    with database.create_table(name, batch.schema, or_replace=or_replace, encoding=encoding) as writer:
        writer.write(batch)
        writer.commit()


def append(database, name, *batches):
    with database.table(name).append() as writer:
        for batch in batches:
            writer.write(batch)
        writer.commit()


def state(path):
    """The content of every table, read with a file system that works."""
    if not path.exists():
        return {}
    with Database.open(path) as database:
        found = {}
        for name in database.table_names():
            with database.table(name).snapshot() as snapshot:
                found[name] = crash_workload.content(snapshot)
        return found


def expected_states():
    """The content of all tables after each step of a run without failures."""
    with scratch() as base:
        found = [{}]
        for step in STEPS:
            with Database.open(base) as database:
                step(database)
            found.append(state(base))
        return found


def total_operations():
    with scratch() as base:
        filesystem = FailingFileSystem()
        with Database.open(base / DATABASE, filesystem) as database:
            for step in STEPS:
                step(database)
        return filesystem.operations


@pytest.mark.long
@pytest.mark.parametrize("stays_full", [False, True], ids=["once", "from then on"])
def test_any_operation_may_find_the_disk_full(stays_full):
    """Every operation, or every eleventh, which are other ones where the disk stays full."""
    expected = expected_states()
    step = effort(11, 1)
    for fails_at in range(step // 2 * stays_full, total_operations(), step):
        with scratch() as base:
            fail_at(fails_at, base / DATABASE, expected, stays_full=stays_full)


def fail_at(fails_at, path, expected, *, stays_full):
    filesystem = FailingFileSystem(fails_at, stays_full=stays_full)
    done = 0
    message = ""
    try:
        with Database.open(path, filesystem) as database:
            for step in STEPS:
                step(database)
                done += 1
    except StorageError as error:
        message = str(error)
    assert filesystem.failed
    if done < len(STEPS):
        assert "No space left" in message
        assert "free some space" in message
        # That a commit is not recorded, beside it or outside of its table's folder, is no failure of it; that
        # a record's removal cannot be synced is one.
        first, *later = filesystem.failed
        is_record = "committed" in (first.suffix[1:], *first.parts)
        assert str(first) in message or (is_record and any(str(path) in message for path in later))
    now = state(path)
    if now != expected[done]:
        # Only where the version was there already, and its name could not be synced; the message says so.
        assert now == expected[done + 1]
        assert "may not survive a power failure" in message
        done += 1
    if not path.exists():
        return
    # There is room again.
    with Database.open(path) as database:
        assert database.check().clean
        database.vacuum()
        report = database.check()
        assert report.clean
        assert report.litter == []
        assert state(path) == now
        for step in STEPS[done:]:
            step(database)
    assert state(path) == expected[-1]


def test_an_aborted_write_gives_its_room_back(tmp_path):
    with Database.open(tmp_path / "db") as database:
        create(database, "a", rows(0, 10))
    before = sorted(tmp_path.rglob("*"))
    database = Database.open(tmp_path / "db", FailingFileSystem(10, stays_full=True))
    with pytest.raises(StorageError, match="No space"):
        append(database, "a", *[rows(0, 1500)] * 20)
    assert sorted(tmp_path.rglob("*")) == before


@contextmanager
def small_volume(folder, size):
    """A real file system of `size` bytes, where we may make one."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small tmpfs needs privileges that this process does not have")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_real_full_volume(tmp_path):
    with small_volume(tmp_path, 2 << 20):
        path = tmp_path / "db"
        with Database.open(path) as database:
            create(database, "a", rows(0, 1500))
            committed = list(range(1500))

            def fill():
                while True:
                    append(database, "a", rows(0, 1000))
                    committed.extend(range(1000))

            with pytest.raises(StorageError, match="No space left on device") as caught:
                fill()
            assert caught.value.path is not None
            assert str(path) in str(caught.value)
            assert state(path)["a"]["id"] == committed
            assert database.check().clean
            # A full disk can be emptied: dropping and vacuuming need next to no room.
            database.vacuum()
            create(database, "a", rows(0, 10), or_replace=True)
            database.vacuum()
            append(database, "a", rows(10, 1000))
            report = database.check()
            assert report.clean
            assert report.litter == []
            assert state(path)["a"]["id"] == list(range(1000))


LIMITED = """
import random
import sys
from base64 import b64encode
import pyarrow as pa
from bamquery.errors import StorageError
from bamquery.storage.database.database import Database
with Database.open(sys.argv[1]) as database:
    table = database.table("a")
    with table.append() as writer:
        luck = random.Random(0)  # what compression makes no smaller
        rows = [{"id": row, "text": b64encode(luck.randbytes(750)).decode()} for row in range(2000)]
        rows = pa.RecordBatch.from_pylist(rows, schema=writer.schema)
        try:
            writer.write(rows)
            writer.commit()
        except StorageError as error:
            print(error)
    with table.append() as writer:
        writer.write(pa.RecordBatch.from_pylist([{"id": 2, "text": "y"}], schema=writer.schema))
        writer.commit()
"""


def test_a_file_size_limit(tmp_path):
    path = tmp_path / "db"
    with Database.open(path) as database:
        create(database, "a", rows(0, 10))
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "cannot write: File too large" in done.stdout
    assert str(path) in done.stdout
    assert state(path)["a"]["id"] == [*range(10), 2]
    with Database.open(path) as database:
        report = database.check()
        assert report.clean
        assert report.litter == []
