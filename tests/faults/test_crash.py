"""Power failures: after any operation, with any unsynced change lost, a committed version is there.

The log of a workload that uses everything is cut at every operation. Of what was not synced by then, names
and bytes are lost, kept, cut short, torn and zeroed, all alike and at random. Each folder that may result is
opened, compared with what was committed, checked, vacuumed and written to. And each sync is left out in turn,
which must be noticed: the proof can fail, and no sync is there for nothing.
"""

import random

import pytest

from bamquery.storage.tables import writer as table_writer
from tests.faults import crash_workload
from tests.faults.crash_replay import DATABASE, record, replay, scratch
from tests.faults.recording import Disk, KilledError, RecordingFileSystem, build
from tests.selection.effort import effort


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Let a few rows fill a fragment, and a few appends be merged."""
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", crash_workload.FRAGMENT_BYTES)
    monkeypatch.setattr(table_writer, "MERGED_APPENDS", 2)


@pytest.mark.long
def test_a_crash_anywhere_leaves_a_committed_version():
    with scratch() as base:
        history = record(base)
        kinds = {operation.kind for operation in history.filesystem.operations}
        assert kinds >= {"create", "write", "sync", "publish", "remove", "make_directory", "remove_directory"}
        assert replay(history, base, subsets=effort(0, 40)) > effort(250, 2_000)


@pytest.mark.long
def test_a_crash_amid_definitions_leaves_a_committed_version():
    """Columns that change, and views, go by the same protocol."""
    with scratch() as base:
        history = record(base, run=crash_workload.run_definitions)
        assert replay(history, base, subsets=effort(0, 40)) > effort(100, 400)


@pytest.mark.long
def test_a_crash_amid_renames_leaves_a_table_under_one_name():
    with scratch() as base:
        history = record(base, run=crash_workload.run_renames)
        assert replay(history, base, subsets=effort(0, 40)) > effort(100, 400)


def is_noticed(site, published):
    """True if the workload without this one sync can lose something."""
    without = frozenset({site})
    with scratch() as base:
        history = record(base, without)
        assert site not in history.filesystem.sites
        try:
            replay(history, base, subsets=4, first=history.filesystem.first_left_out)
            # Some are there for what another process left unsynced when it was killed.
            for number in published:
                kill_then_crash(number + 1, without, subsets=10, operations=8)
            replay(history, base, subsets=100, first=history.filesystem.first_left_out)
        except AssertionError:
            return True
    return False


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_sync_is_needed():
    with scratch() as base:
        sites = record(base).filesystem.sites
    assert {site.split(":")[0] for site in sites} == {
        "folder.py",
        "table_creation.py",
        "transaction.py",
        "vacuum.py",
        "writer.py",
    }
    assert len(sites) >= 15
    assert [site for site in sites if not is_noticed(site, publications())] == []


def kill_then_crash(killed_at, without=frozenset(), *, subsets, operations=None):
    """A process is killed, another one goes on from what it sees, and then the power fails."""
    for vacuum_first in (True, False):
        with scratch() as base:
            history = record(base, without, killed_at)
            assert len(history.filesystem.operations) <= killed_at
            history.filesystem.revive()
            crash_workload.go_on(history, base / DATABASE, vacuum_first=vacuum_first)
            last = None if operations is None else killed_at + operations
            replay(history, base, subsets=subsets, first=killed_at, last=last)


def publications():
    """The numbers of the operations that make a version visible."""
    with scratch() as base:
        operations = record(base).filesystem.operations
        return [n for n, operation in enumerate(operations) if operation.kind == "publish"]


@pytest.mark.slow
def test_a_crash_after_another_process_was_killed():
    published = publications()
    for killed_at in [published[3] + 1, random.Random(0).randrange(published[0], published[-1])]:
        kill_then_crash(killed_at, subsets=2, operations=40)


PARTS = 8


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_crash_after_another_process_was_killed_anywhere(part):
    """Each part is spread over all of the workload, and takes one to two minutes of a core."""
    with scratch() as base:
        count = len(record(base).filesystem.operations)
    for killed_at in range(1 + 4 * part, count, 4 * PARTS):
        kill_then_crash(killed_at, subsets=2, operations=60)


def test_the_recording_is_of_what_happened(tmp_path):
    """A log replayed with nothing lost is the folder itself."""
    history = record(tmp_path)
    disk = Disk(tmp_path)
    for operation in history.filesystem.operations:
        disk.apply(operation)
    tree = dict(disk.outcomes(0, 0))["everything"]
    real = {
        str(path.relative_to(tmp_path)): path.read_bytes() if path.is_file() else None
        for path in tmp_path.rglob("*")
    }
    assert tree == real
    with scratch() as copy:
        build(tree, copy)
        crash_workload.verify(copy / DATABASE, history.allowed(len(history.filesystem.operations)))


def test_a_killed_process_does_nothing_more(tmp_path):
    filesystem = RecordingFileSystem(killed_at=0)
    with pytest.raises(KilledError):
        filesystem.make_directory(tmp_path / "x")
    assert not (tmp_path / "x").exists()
