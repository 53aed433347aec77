import errno
import os

import pytest

from bamquery.errors import ConflictError, CorruptionError, StorageError
from bamquery.storage.database.database import Database
from bamquery.storage.files.filesystem import PosixFileSystem
from bamquery.storage.fragments.schema_evolution import ColumnRule
from bamquery.storage.tables.folder import Pin, pin_latest
from bamquery.storage.tables.transaction import Transaction
from tests.faults.recording import RecordingFileSystem
from tests.unit.storage.sample_tables import SCHEMA, append, batch, create, values_of


class Faulty(PosixFileSystem):
    """Fails to publish, in one of the ways network file systems do."""

    def __init__(self, done):
        super().__init__()
        self.done = done

    def publish(self, source, target):
        if target.name == "bamquery.json":
            super().publish(source, target)
            return
        if self.done:
            super().publish(source, target)
        raise StorageError("cannot publish: the answer was lost", target)


def test_a_commit_is_done_in_the_order_that_makes_it_safe(tmp_path):
    filesystem = RecordingFileSystem()
    with Database.open(tmp_path / "db", filesystem) as database:
        create(database, "t", [1])
        start = len(filesystem.operations)
        append(database, "t", [2])
    steps = [
        (operation.kind, operation.path.name.partition(".")[2] or operation.path.name)
        for operation in filesystem.operations[start:]
        if operation.kind != "write"
    ]
    draft = next(o.path.name.partition(".")[2] for o in filesystem.operations[start:] if o.kind == "publish")
    assert steps == [
        ("create", "arrow"),
        ("sync", "arrow"),
        ("create", "vectors.arrow"),
        ("sync", "vectors.arrow"),
        ("sync_directory", "fragments"),
        ("create", draft),
        ("sync", draft),
        ("publish", draft),
        ("sync_directory", "manifests"),
        ("remove", draft),
        ("create", "committed"),
        ("remove", "committed"),
    ]


def test_files_stay_where_it_is_unknown_whether_they_were_published(tmp_path):
    with Database.open(tmp_path / "db") as database:
        create(database, "t", [1])
    with Database.open(tmp_path / "db", Faulty(done=True)) as database:
        with pytest.raises(StorageError, match="the answer was lost"):
            append(database, "t", [2])
        assert values_of(database, "t") == [1, 2]
        assert database.check().clean
    with Database.open(tmp_path / "db", Faulty(done=False)) as database:
        with pytest.raises(StorageError, match="the answer was lost"):
            append(database, "t", [3])
        assert values_of(database, "t") == [1, 2]
        assert len(database.check().litter) == 4  # two files, its draft, and the draft of the one before
        database.vacuum()
        assert database.check().litter == []


def test_a_name_that_cannot_be_synced_is_said_to_be_unsafe(tmp_path, monkeypatch):
    with Database.open(tmp_path / "db") as database:
        create(database, "t", [1])
        real = os.fsync
        folder = os.stat(database.table("t").folder.manifests)

        def fsync(descriptor):
            if os.path.samestat(os.fstat(descriptor), folder):
                raise OSError(errno.EIO, "Input/output error")
            real(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(StorageError, match="version 2 may not survive a power failure"):
            append(database, "t", [2])
        monkeypatch.undo()
        assert values_of(database, "t") == [1, 2]
        assert append(database, "t", [3]) == 3


def test_a_conflict_is_found_even_where_removing_fails(tmp_path):
    class Stubborn(PosixFileSystem):
        def remove(self, path):
            raise StorageError("cannot remove: Permission denied", path)

    with Database.open(tmp_path / "db") as database:
        create(database, "t", [1])
    with Database.open(tmp_path / "db", Stubborn()) as database:
        writer = database.table("t").append()
        writer.write(batch([2]))
        append(database, "t", [3])
        with pytest.raises(ConflictError):
            writer.commit()
        assert values_of(database, "t") == [1, 3]
    with Database.open(tmp_path / "db") as database:
        database.vacuum()
        assert database.check().litter == []
        assert database.table("t").snapshot().schema == SCHEMA


def test_what_follows_on_a_version_keeps_the_rules_of_its_columns(tmp_path):
    def rules():
        with database.hold("t") as snapshot:
            return snapshot.evolution.rules

    with Database.open(tmp_path / "db") as database:
        create(database, "t", [1], rules=[ColumnRule(default="5")])
        append(database, "t", [2])
        assert rules() == (ColumnRule(default="5"),)
        database.table("t").optimize()
        assert rules() == (ColumnRule(default="5"),)
        create(database, "t", [3], or_replace=True)
        assert rules() == ()


def test_the_rules_of_its_columns_end_with_a_table(tmp_path):
    with Database.open(tmp_path / "db") as database:
        create(database, "t", [1], rules=[ColumnRule(default="5")])
        database.drop_table("t")
        assert database.table_names() == []
        create(database, "t", [2])
        with database.hold("t") as snapshot:
            assert snapshot.evolution.rules == ()


def test_a_table_that_leads_elsewhere_is_not_written_to_nor_held(tmp_path, monkeypatch):
    released = []
    close = Pin.close
    monkeypatch.setattr(Pin, "close", lambda pin: (released.append(pin), close(pin)))
    with Database.open(tmp_path / "db") as database:
        create(database, "t", [1])
        folder = database.table("t").folder
        base, fragments = pin_latest(folder), folder.fragments
        fragments.rename(tmp_path / "elsewhere")
        fragments.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(CorruptionError, match="link"):
            Transaction(PosixFileSystem(), folder, base)
    assert base in released


def test_a_change_without_rows_leaves_the_fragments_alone(tmp_path):
    filesystem = RecordingFileSystem()
    with Database.open(tmp_path / "db", filesystem) as database:
        create(database, "t", [1])
        start = len(filesystem.operations)
        database.drop_table("t")
    touched = {operation.path.name for operation in filesystem.operations[start:]}
    assert "manifests" in touched
    assert "fragments" not in touched
