"""Folders that somebody changed on purpose: damage is said, not waited for; no other file goes."""

import os
import shutil
import socket

import pytest

from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.database import database as database_module
from bamquery.storage.database.database import Database
from bamquery.storage.files.locks import LockFile
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.readers.queue_reader import QueueReader
from bamquery.storage.tables.folder import TableFolder
from bamquery.storage.tables.stored_view import StoredView
from tests.unit.storage.sample_tables import SCHEMA, append, batch, create, values_of


@pytest.fixture
def database(tmp_path):
    with Database.open(tmp_path / "db") as database:
        create(database, "t", [1])
        append(database, "t", [2])
        yield database


def damage(database):
    return {error.path for error in database.check().errors}


# Manifests that are missing.


def test_a_missing_newest_manifest_is_damage_and_never_the_version_before(database):
    folder = database.table("t").folder
    folder.manifest(2).unlink()
    assert damage(database) == {folder.manifest(2)}
    assert database.check().litter == []
    assert database.table_names() == ["t"]
    works = [
        lambda: values_of(database, "t"),
        lambda: database.has_table("t"),
        lambda: append(database, "t", [3]),
        lambda: create(database, "t", [3], or_replace=True),
        lambda: database.drop_table("t"),
        lambda: database.rename("t", "u"),
        lambda: database.table("t").optimize(),
        database.vacuum,
    ]
    before = sorted(folder.path.rglob("*"))
    for work in works:
        with pytest.raises(CorruptionError, match="missing") as caught:
            work()
        assert caught.value.path == folder.manifest(2)
        assert "00000002.committed" in str(caught.value)
    assert sorted(folder.path.rglob("*")) == before
    folder.commit(2).unlink()  # the way out that is said
    assert values_of(database, "t") == [1]
    append(database, "t", [3])
    assert database.check().clean


def test_a_table_whose_only_manifest_is_missing_stays_among_the_tables(tmp_path):
    with Database.open(tmp_path / "db") as database:
        create(database, "t", [1])
        folder = database.table("t").folder
        folder.manifest(1).unlink()
        assert database.table_names() == ["t"]
        assert damage(database) == {folder.manifest(1)}
        with pytest.raises(CorruptionError, match="missing"):
            values_of(database, "t")
        with pytest.raises(CorruptionError, match="missing"):
            create(database, "t", [5])
        with pytest.raises(CorruptionError, match="missing"):
            database.vacuum()
        assert len(list(folder.fragments.iterdir())) == 2
        shutil.rmtree(folder.path)  # the other way out
        folder.record.unlink()
        create(database, "t", [5])
        assert database.check().clean


def test_a_missing_end_of_a_table_does_not_bring_it_back(database):
    folder = database.table("t").folder
    database.drop_table("t")
    folder.manifest(3).unlink()
    with pytest.raises(CorruptionError, match="missing"):
        values_of(database, "t")


def every_statement(database):
    return [
        lambda: values_of(database, "t"),
        lambda: database.has_table("t"),
        lambda: database.view("t"),
        lambda: append(database, "t", [3]),
        lambda: create(database, "t", [3]),
        lambda: create(database, "t", [3], or_replace=True),
        lambda: database.create_view("t", StoredView("SELECT 1", ("x",)), or_replace=True),
        lambda: database.drop_table("t"),
        lambda: database.rename("t", "u"),
        lambda: database.rename("other", "t"),
        database.vacuum,
    ]


def remove_manifests(folder):
    for path in folder.manifests.iterdir():
        path.unlink()


def remove_every_table(folder):
    shutil.rmtree(folder.path.parent)


@pytest.mark.parametrize(
    "remove",
    [
        remove_manifests,
        lambda folder: shutil.rmtree(folder.manifests),
        lambda folder: shutil.rmtree(folder.path),
        remove_every_table,
    ],
    ids=["manifests", "their folder", "the table's folder", "all tables' folders"],
)
def test_a_table_of_which_no_version_is_left_is_damage(database, remove, tmp_path):
    create(database, "other", [7])
    folder = database.table("t").folder
    shutil.copytree(folder.path, tmp_path / "copy")
    remove(folder)
    lost = folder.manifests if folder.path.exists() else folder.path
    before = sorted(database.path.rglob("*"))
    for one in (database, Database.open(database.path)):
        assert one.table_names() == ["other", "t"]
        assert lost in damage(one)
        assert folder.path not in one.check().litter
        for work in every_statement(one):
            with pytest.raises(CorruptionError, match="missing") as caught:
                work()
            assert (caught.value.path == lost) or remove is remove_every_table
            assert str(caught.value.path.parent.parent) in str(caught.value)
    assert sorted(database.path.rglob("*")) == before
    if remove is not remove_every_table:
        assert values_of(database, "other") == [7]
    shutil.copytree(tmp_path / "copy", folder.path, dirs_exist_ok=True)  # a way out that is said
    assert values_of(database, "t") == [1, 2]
    shutil.rmtree(folder.path)  # another one
    folder.record.unlink()
    create(database, "t", [5])
    assert values_of(database, "t") == [5]


def test_a_view_that_is_missing_is_damage(database):
    database.create_view("v", StoredView("SELECT 1", ("x",)))
    folder = database._folder("v")
    shutil.rmtree(folder.path)
    assert damage(database) == {folder.path}
    with pytest.raises(CorruptionError, match="missing"):
        database.view("v")


def test_tables_that_ended_are_not_missed(database):
    database.rename("t", "u")
    database.vacuum()
    assert os.listdir(database.path / "committed") == ["u"]
    database.drop_table("u")
    database.vacuum()
    assert os.listdir(database.path / "committed") == os.listdir(database.path / "tables") == []
    with database.create_table("never", SCHEMA) as writer:
        writer.write(batch([1]))
    assert os.listdir(database.path / "committed") == []
    assert database.check().clean
    assert database.table_names() == []


def test_a_table_that_an_earlier_bamquery_made_is_recorded_by_its_next_commit(database):
    folder = database.table("t").folder
    shutil.rmtree(database.path / "committed")
    assert database.check().clean
    append(database, "t", [3])
    assert folder.record.read_bytes() == b""


@pytest.mark.parametrize("folder", [False, True])
def test_what_else_is_among_the_records_is_named(database, folder):
    other = database.path / "committed" / "What.is this"
    other.mkdir() if folder else other.touch()
    assert database.check().unknown == [other]
    assert database.check().clean
    assert database.table_names() == ["t"]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/etc")], ids=["pipe", "link"])
def test_records_that_are_no_folder_are_damage(database, make):
    records = database.path / "committed"
    shutil.rmtree(records)
    make(records)
    assert damage(database) >= {records}


def test_a_copied_folder_is_whole(database, tmp_path):
    shutil.copytree(database.path, tmp_path / "copy")
    with Database.open(tmp_path / "copy") as copy:
        assert copy.check().clean
        assert values_of(copy, "t") == [1, 2]
        append(copy, "t", [3])


def test_a_folder_without_records_of_commits_is_whole(database):
    """As a power failure may leave it, or a BamQuery that wrote none."""
    folder = database.table("t").folder
    folder.commit(2).unlink()
    assert database.check().clean
    append(database, "t", [3])
    assert folder.commits() == [3]


def test_records_of_earlier_commits_go(database):
    folder = database.table("t").folder
    assert folder.commits() == [2]
    folder.commit(1).touch()  # a writer that was killed before it removed it
    assert database.check().clean
    database.vacuum()
    assert folder.commits() == [2]


def test_a_listing_that_misses_a_name_is_made_again(database, monkeypatch):
    folder = database.table("t").folder
    real = os.listdir
    missed = iter([True, True])

    def listdir(path):
        names = real(path)
        return [n for n in names if not n.endswith("2.json")] if next(missed, False) else names

    monkeypatch.setattr(os, "listdir", listdir)
    assert folder.latest() == 2


# Other things in the place of files.


def link_to_itself(path):
    path.symlink_to(path.name)


def dangling(path):
    path.symlink_to("nothing there")


def sock(path):
    place = socket.socket(socket.AF_UNIX)
    folder = os.open(path.parent, os.O_RDONLY)
    place.bind(f"/proc/self/fd/{folder}/{path.name}")
    place.close()
    os.close(folder)


def linked_device(path):
    path.symlink_to("/dev/zero")


STANDINS = [os.mkfifo, dangling, link_to_itself, sock, linked_device, os.mkdir]


@pytest.mark.parametrize("make", STANDINS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", ["data", "vectors", "manifest", "lock"])
def test_what_is_no_file_is_damage_and_not_waited_for(database, make, name):
    folder = database.table("t").folder
    with database.table("t").snapshot() as snapshot:
        entry = snapshot.entries[-1]
    path = {
        "data": folder.fragments / entry.data_name,
        "vectors": folder.fragments / entry.vectors_name,
        "manifest": folder.manifest(2),
        "lock": folder.lock,
    }[name]
    path.unlink()
    make(path)
    with Database.open(database.path) as other:
        assert path in damage(other)
        with pytest.raises(StorageError) as caught:
            values_of(other, "t")
        assert str(path) in str(caught.value)
        assert other.table_names() == ["t"]


@pytest.mark.parametrize("make", STANDINS, ids=lambda make: make.__name__)
def test_a_marker_that_is_no_file_is_damage(database, make):
    path = database.path / "bamquery.json"
    path.unlink()
    make(path)
    with pytest.raises(StorageError, match=r"bamquery\.json"):
        Database.open(database.path)


def test_a_fragment_that_becomes_a_pipe_while_it_is_open_is_damage(database):
    with database.table("t").snapshot() as snapshot:
        path, size = snapshot.fragments[0].path, snapshot.fragments[0].data_bytes
        path.unlink()
        os.mkfifo(path)
        for reader in (MappedReader, QueueReader):
            with pytest.raises(CorruptionError, match="regular"):
                reader(path, size)


# Links in the place of folders.


@pytest.fixture(params=["fragments", "manifests", "t", "tables"])
def linked(request, database, tmp_path):
    """The link, and the folder that it leads to, with files of somebody else that look like ours."""
    folder = database.table("t").folder
    path = {"t": folder.path, "tables": folder.path.parent}.get(request.param, folder.path / request.param)
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    (elsewhere / "0123456789abcde-0000.arrow").write_text("x")
    (elsewhere / "0123456789abcde.7.tmp").write_text("x")
    return path, elsewhere


def everything(folder):
    return sorted((str(path), path.lstat().st_mtime_ns) for path in [folder, *folder.rglob("*")])


def test_nothing_is_written_or_removed_through_a_link(database, linked):
    path, elsewhere = linked
    before = everything(elsewhere)
    works = [
        database.vacuum,
        lambda: database.drop_table("t"),
        lambda: database.table("t").optimize(),
        lambda: database.rename("t", "u"),
        lambda: append(database, "t", [3]),
        lambda: create(database, "t", [3], or_replace=True),
        lambda: database.table("t").rename_column("value", "other"),
    ]
    for number, work in enumerate(works):
        with pytest.raises(StorageError, match="link in the place of a folder") as caught:
            work()
        assert caught.value.path == path, number
        assert everything(elsewhere) == before, number
    assert path in damage(database)
    assert values_of(database, "t") == [1, 2]  # looking does no harm


@pytest.mark.parametrize("swapped", ["fragments", "manifests", "t", "tables"])
@pytest.mark.parametrize("dropped", [False, True], ids=["", "dropped"])
def test_nothing_is_removed_through_a_link_that_appears_behind_the_check(
    database, swapped, dropped, tmp_path, monkeypatch
):
    append(database, "t", [3])
    if dropped:
        database.drop_table("t")
    folder = database._folder("t")
    path = {"t": folder.path, "tables": folder.path.parent}.get(swapped, folder.path / swapped)
    elsewhere = tmp_path / "elsewhere"
    inner = elsewhere / folder.fragments.relative_to(path) if swapped in ("t", "tables") else elsewhere
    real = TableFolder.require_no_links

    def swap(self):
        real(self)
        if not elsewhere.exists():
            path.rename(elsewhere)
            path.symlink_to(elsewhere)
            (inner / "0123456789abcde-0000.arrow").write_text("x")
            (inner / "0123456789abcde.7.tmp").write_text("x")
            before.extend(everything(elsewhere))

    before = []
    monkeypatch.setattr(TableFolder, "require_no_links", swap)
    with pytest.raises(CorruptionError, match="link in the place of a folder") as caught:
        database.vacuum()
    assert caught.value.path == path
    assert everything(elsewhere) == before


def test_a_link_in_the_place_of_a_dropped_table_is_not_followed(database, tmp_path):
    database.drop_table("t")
    folder = database._folder("t")
    elsewhere = tmp_path / "elsewhere"
    folder.fragments.rename(elsewhere)
    folder.fragments.symlink_to(elsewhere)
    before = everything(elsewhere)
    with pytest.raises(CorruptionError, match="link in the place"):
        database.vacuum()
    assert everything(elsewhere) == before


def test_locks_are_let_go_where_a_link_is_refused(database, linked, monkeypatch):
    opened = []

    class Counted(LockFile):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            opened.append(self)

    monkeypatch.setattr("bamquery.storage.tables.folder.LockFile", Counted)
    monkeypatch.setattr(database_module, "LockFile", Counted)
    with pytest.raises(CorruptionError):
        append(database, "t", [3])
    assert not any(lock._finalizer.alive for lock in opened)


# Folders that go while they are open.


def test_a_database_whose_folder_is_gone_says_so(database):
    shutil.rmtree(database.path)
    works = [
        database.table_names,
        database.view_names,
        lambda: create(database, "u", [1]),
        lambda: values_of(database, "t"),
        lambda: database.drop_table("t"),
        lambda: database.rename("t", "u"),
        database.vacuum,
        database.check,
    ]
    for work in works:
        with pytest.raises(StorageError, match="folder was removed or moved") as caught:
            work()
        assert caught.value.path == database.path
