"""A table under another name: all see it under one of the two, whatever happens on the way."""

import errno
import os

import pytest

from bamquery.errors import CatalogError, ConflictError, StorageError
from bamquery.storage.database.database import Database
from bamquery.storage.files.filesystem import PosixFileSystem
from bamquery.storage.files.locks import LockFile
from bamquery.storage.fragments.schema_evolution import ColumnRule
from bamquery.storage.tables import renaming
from bamquery.storage.tables.known_manifests import read_manifest
from bamquery.storage.tables.manifest import Place
from bamquery.storage.tables.stored_view import StoredView
from tests.unit.storage.sample_tables import append, create, values_of


@pytest.fixture
def database(tmp_path):
    with Database.open(tmp_path / "db") as database:
        create(database, "old", [1, 2])
        yield database


def latest(database, name):
    folder = database._folder(name)
    return read_manifest(folder.manifest(folder.latest()))


def test_a_table_moves_with_its_rows(database):
    with database.table("old").snapshot() as before:
        database.rename("OLD", "New")
        assert database.table_names() == ["New"]
        assert not database.has_table("old")
        assert values_of(database, "new") == [1, 2]
        database.vacuum()
        assert before.fragments[0].rows == 2
    append(database, "new", [3])
    database.vacuum()
    assert values_of(database, "new") == [1, 2, 3]
    report = database.check()
    assert report.clean
    assert report.litter == []
    assert latest(database, "new").origin is None


def test_there_and_back_again(database):
    for old, new in (("old", "new"), ("new", "old"), ("old", "new")):
        database.rename(old, new)
        create(database, old, [9])
        database.drop_table(old)
        append(database, new, [5])
    assert values_of(database, "new") == [1, 2, 5, 5, 5]
    database.vacuum()
    assert values_of(database, "new") == [1, 2, 5, 5, 5]
    assert database.check().clean


def test_only_the_letters_change(database):
    database.rename("old", "OLD")
    assert database.table_names() == ["OLD"]
    version = latest(database, "old").version
    database.rename("old", "OLD")
    assert latest(database, "old").version == version
    assert values_of(database, "old") == [1, 2]


def test_views_move_too(database):
    database.create_view("v", StoredView("SELECT 1"))
    database.rename("v", "w")
    database.rename("w", "W")
    assert database.view_names() == ["W"]
    assert database.view("w") == StoredView("SELECT 1")
    database.vacuum()
    assert database.view("w") == StoredView("SELECT 1")
    assert database.check().litter == []


@pytest.mark.parametrize(("old", "new"), [("nope", "x"), ("old", "taken"), ("old", "view"), ("old", "")])
def test_names_that_are_missing_or_taken(database, old, new):
    create(database, "taken", [7])
    database.create_view("view", StoredView("SELECT 1"))
    with pytest.raises(CatalogError):
        database.rename(old, new)
    assert values_of(database, "old") == [1, 2]
    assert database.table_names() == ["old", "taken"]


def test_a_writer_who_commits_meanwhile_wins(database, monkeypatch):
    adopt = renaming.Transaction.adopt

    def overtaken(self, *arguments):
        append(database, "old", [3])
        adopt(self, *arguments)

    monkeypatch.setattr(renaming.Transaction, "adopt", overtaken)
    with pytest.raises(ConflictError):
        database.rename("old", "new")
    monkeypatch.undo()
    assert values_of(database, "old") == [1, 2, 3]
    assert database.table_names() == ["old"]
    database.vacuum()
    assert database.check().litter == []
    create(database, "new", [8])
    assert values_of(database, "new") == [8]


def test_nobody_makes_a_table_meanwhile(database, monkeypatch):
    adopt = renaming.Transaction.adopt

    def hindered(self, *arguments):
        with LockFile(database.path / "bamquery.json") as lock:
            assert not lock.try_shared(0)
        adopt(self, *arguments)

    monkeypatch.setattr(renaming.Transaction, "adopt", hindered)
    database.rename("old", "new")


def test_vacuum_meanwhile_leaves_the_links(database, monkeypatch):
    adopt = renaming.Transaction.adopt

    def vacuumed(self, *arguments):
        adopt(self, *arguments)
        assert database.vacuum().in_use == ["new"]

    monkeypatch.setattr(renaming.Transaction, "adopt", vacuumed)
    database.rename("old", "new")
    assert values_of(database, "new") == [1, 2]
    assert database.check().clean


def test_rules_of_columns_move_too(database):
    create(database, "t", [1], rules=[ColumnRule(default="5")])
    database.rename("t", "u")
    with database.hold("u") as snapshot:
        assert snapshot.evolution.rules == (ColumnRule(default="5"),)
    assert latest(database, "t").dropped
    create(database, "t", [2])
    assert values_of(database, "t") == [2]


def test_a_crash_before_the_last_step_changes_nothing_for_readers(database, monkeypatch):
    def killed(filesystem, folder):
        raise StorageError("killed")

    monkeypatch.setattr(renaming, "settle", killed)
    database.rename("old", "new")
    monkeypatch.undo()
    origin = latest(database, "new").origin
    assert origin == Place("old", 2)
    assert latest(database, "old").heir == Place("new", 1)
    assert values_of(database, "new") == [1, 2]
    # What the new name depends on stays until it does so no longer.
    create(database, "old", [4])
    assert renaming.is_awaited(database._folder("old"), 2)
    with database.table("new").snapshot():
        database.vacuum()
    assert latest(database, "new").origin is None
    database.vacuum()
    assert values_of(database, "new") == [1, 2]
    assert values_of(database, "old") == [4]
    assert database.check().clean


def test_rows_added_before_the_last_step(database, monkeypatch):
    monkeypatch.setattr(renaming, "settle", lambda filesystem, folder: None)
    database.rename("old", "new")
    append(database, "new", [3])
    monkeypatch.undo()
    database.vacuum()
    assert values_of(database, "new") == [1, 2, 3]


def test_a_file_system_without_links(tmp_path):
    class NoLinks(PosixFileSystem):
        def link(self, source, target):
            raise StorageError(os.strerror(errno.EPERM), target)

    with Database.open(tmp_path / "db", NoLinks()) as database:
        create(database, "old", [1, 2])
        with pytest.raises(StorageError):
            database.rename("old", "new")
        assert values_of(database, "old") == [1, 2]
        assert database.table_names() == ["old"]
        database.vacuum()
        assert database.check().litter == []


def test_links_made_before_a_failure_are_removed(tmp_path):
    class Full(PosixFileSystem):
        def link(self, source, target):
            if target.name.endswith(".vectors.arrow"):
                raise StorageError(os.strerror(errno.ENOSPC), target)
            super().link(source, target)

    with Database.open(tmp_path / "db", Full()) as database:
        create(database, "old", [1, 2])
        create(database, "new", [3])
        with database.table("new").snapshot() as read:  # so its folder stays
            database.drop_table("new")
            before = sorted(database.path.rglob("*.arrow"))
            with pytest.raises(StorageError, match="No space"):
                database.rename("old", "new")
            assert sorted(database.path.rglob("*.arrow")) == before
            assert read.fragments[0].rows == 1
        assert values_of(database, "old") == [1, 2]


def test_links(tmp_path):
    filesystem = PosixFileSystem()
    (tmp_path / "a").write_text("a")
    (tmp_path / "c").write_text("c")
    filesystem.link(tmp_path / "a", tmp_path / "b")
    filesystem.link(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_text() == "a"
    with pytest.raises(StorageError, match="another file"):
        filesystem.link(tmp_path / "a", tmp_path / "c")
    with pytest.raises(StorageError, match="cannot link"):
        filesystem.link(tmp_path / "missing", tmp_path / "d")
