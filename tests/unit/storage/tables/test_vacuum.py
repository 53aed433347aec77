import os

import pytest

from bamquery.errors import ConflictError, CorruptionError, StorageError
from bamquery.storage.database.database import Database
from bamquery.storage.files.locks import VACUUM, LockFile
from bamquery.storage.tables import folder as table_folder
from bamquery.storage.tables import writer as table_writer
from tests.unit.storage.sample_tables import (
    SCHEMA,
    OtherProcess,
    append,
    batch,
    create,
    fill,
    rows_of,
    values_of,
)


@pytest.fixture
def database(tmp_path):
    with Database.open(tmp_path / "db") as database:
        create(database, "t", [1])
        yield database


@pytest.fixture
def other(database):
    with OtherProcess(database) as other:
        yield other


def versions(database, name="t"):
    return [version.version for version in database.table(name).versions()]


def files(database):
    return sorted(str(p.relative_to(database.path)) for p in database.path.rglob("*") if p.is_file())


def test_the_latest_version_stays_and_what_nobody_needs_goes(database):
    append(database, "t", [2])
    create(database, "t", [3], or_replace=True)
    size = sum(path.stat().st_size for path in database.path.rglob("*.arrow"))
    report = database.vacuum()
    assert (report.versions, report.files, report.tables, report.in_use) == (2, 4, 0, [])
    assert report.bytes == size - sum(path.stat().st_size for path in database.path.rglob("*.arrow"))
    assert versions(database) == [3]
    assert values_of(database, "t") == [3]
    # Marker, lock, manifest, what says that it and the table were committed, two files of one fragment.
    assert len(files(database)) == 7
    again = database.vacuum()
    assert (again.versions, again.files, again.bytes) == (0, 0, 0)


def test_fragments_that_a_kept_version_names_stay(database):
    append(database, "t", [2])
    append(database, "t", [3])
    assert database.vacuum().files == 0
    assert values_of(database, "t") == [1, 2, 3]


def test_versions_in_use_stay_with_the_one_after_them(database):
    for value in (2, 3, 4, 5):
        create(database, "t", [value], or_replace=True)
    with database.table("t").snapshot(2) as snapshot:
        assert database.vacuum().in_use == ["t"]
        # 3 stays so that a writer based on 2 finds that name taken.
        assert versions(database) == [2, 3, 5]
        assert rows_of(snapshot)["a"].to_pylist() == [2]
    assert database.vacuum().in_use == []
    assert versions(database) == [5]


def test_a_writer_whose_base_is_old_can_never_commit_over_what_vacuum_removed(database):
    with database.table("t").append() as late:
        late.write(batch([9]))
        append(database, "t", [2])
        append(database, "t", [3])
        append(database, "t", [4])
        database.vacuum()
        with pytest.raises(ConflictError):
            late.commit()
    assert values_of(database, "t") == [1, 2, 3, 4]


def test_a_creator_that_is_late_can_never_commit_over_what_vacuum_removed(database):
    with database.create_table("n", SCHEMA) as late:
        create(database, "n", [1])
        append(database, "n", [2])
        database.vacuum()
        with pytest.raises(ConflictError):
            late.commit()
    assert values_of(database, "n") == [1, 2]


def test_files_of_a_live_writer_in_another_process_stay_and_of_a_killed_one_go(database, other, monkeypatch):
    before = files(database)
    other.run("import bamquery.storage.tables.writer as w; w.FRAGMENT_BYTES = 8 * 1024")
    other.run("writer = database.table('t').append()")
    other.run("writer.write(batch(range(5000)))")
    other.run("writer._background.settle()")
    during = files(database)
    assert len(during) > len(before)
    report = database.vacuum()
    assert report.files == 0
    assert report.in_use == ["t"]
    assert files(database) == during
    assert database.check().litter == []
    other.kill()
    assert len(database.check().litter) == len(during) - len(before)
    report = database.vacuum()
    assert report.files == len(during) - len(before)
    assert report.in_use == []
    assert files(database) == before


def test_a_live_writers_commit_survives_vacuums_beside_it(database, other, monkeypatch):
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 8 * 1024)
    other.begin("while True: database.vacuum()")
    with database.create_table("n", SCHEMA) as writer:
        for start in range(0, 40_000, 1000):
            writer.write(batch(range(start, start + 1000)))
        writer.commit()
    assert values_of(database, "n") == list(range(40_000))
    for number in range(20):
        append(database, "t", [number])
    assert values_of(database, "t") == [1, *range(20)]


def test_a_commit_just_before_vacuum_looks_for_its_writer_is_not_lost(database, monkeypatch):
    writer = database.table("t").append()
    writer.write(batch(range(5000)))
    writer._flush()
    writer._background.settle()
    real = LockFile.held_by_others

    def held_by_others(self, start, length=1):
        monkeypatch.undo()
        writer.commit()
        return real(self, start, length)

    monkeypatch.setattr(LockFile, "held_by_others", held_by_others)
    assert database.vacuum().files == 0
    assert values_of(database, "t") == [1, *range(5000)]
    assert database.check().clean


def test_two_vacuums_of_one_table_do_not_meet(database, other):
    append(database, "t", [2])
    other.run("from bamquery.storage.files.locks import *")
    other.run("lock = LockFile(database.table('t').folder.lock, exclusive=True)")
    assert other.run("lock.try_exclusive(VACUUM)")
    assert database.vacuum().in_use == ["t"]
    assert versions(database) == [1, 2]
    other.run("lock.close()")
    assert database.vacuum().in_use == []
    assert versions(database) == [2]


def test_a_dropped_tables_folder_goes_when_nobody_reads_it(database, other):
    other.run("snapshot = database.table('t').snapshot()")
    database.drop_table("t")
    assert database.vacuum().in_use == ["t"]
    assert other.run("rows_of(snapshot)['a'].to_pylist()") == [1]
    other.run("snapshot.close()")
    assert database.vacuum().tables == 1
    assert files(database) == ["bamquery.json"]


def test_a_dropped_tables_folder_stays_while_a_table_is_being_created(database):
    database.drop_table("t")
    with database.create_table("t", SCHEMA) as writer:
        assert database.vacuum().in_use == ["t"]
        assert fill(writer, [7]) == 3
    assert values_of(database, "t") == [7]


def test_folders_that_were_just_made_stay_until_the_table_is_locked(database, monkeypatch):
    real = table_folder.pin_latest

    def pin_latest(folder):
        assert database.vacuum().in_use == ["n"]
        return real(folder)

    monkeypatch.setattr(table_folder, "pin_latest", pin_latest)
    create(database, "n", [1])
    assert values_of(database, "n") == [1]


def test_creating_waits_for_the_removal_of_folders(database, other):
    other.run("from bamquery.storage.files.locks import *")
    other.run("lock = LockFile(database.path / 'bamquery.json', exclusive=True)")
    assert other.run("lock.try_exclusive(0)")
    other.begin("import time; time.sleep(0.3); lock.close()")
    create(database, "n", [1])
    assert values_of(database, "n") == [1]


def test_a_writer_that_found_the_folder_removed_starts_over(database):
    """Between looking at a folder and locking it, it may be removed and made again under the same names."""
    real = table_folder.LockFile
    table = database.table("t")

    def slow(path):
        lock = real(path)
        patch.undo()  # once
        database.drop_table("t")
        assert database.vacuum().tables == 1
        create(database, "t", [5])
        return lock

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_folder, "LockFile", slow)
        snapshot = table.snapshot()
    with snapshot:
        assert snapshot.version == 1
        assert rows_of(snapshot)["a"].to_pylist() == [5]
        with LockFile(table.folder.lock, exclusive=True) as lock:
            assert lock.held_by_others(1), "the lock that is held is that of the removed file"


def test_litter_of_every_kind_goes(database):
    folder = database.path / "tables" / "t"
    token = "0123456789abcde"
    litter = [
        database.path / f"bamquery.json.{token}.tmp",
        folder / "manifests" / f"{token}.2.tmp",
        folder / "fragments" / f"{token}-0000.arrow",
        folder / "fragments" / f"{token}-0000.vectors.arrow",
        folder / "fragments" / f"{token}-10000.arrow",
    ]
    for path in litter:
        path.write_bytes(b"xy")
    (database.path / "tables" / "unfinished" / "fragments").mkdir(parents=True)
    assert set(database.check().litter) == {*litter, database.path / "tables" / "unfinished"}
    report = database.vacuum()
    assert (report.files, report.bytes, report.tables) == (5, 10, 1)
    assert database.check().litter == []
    assert values_of(database, "t") == [1]


def test_what_others_have_put_there_stays(database):
    folder = database.path / "tables" / "t"
    foreign = [
        database.path / "README",
        folder / "notes.txt",
        folder / "fragments" / "mine.arrow",
        folder / "manifests" / "backup.json",
        folder / "fragments" / "0123456789abcde-0000.arrow.bak",
    ]
    for path in foreign:
        path.write_text("x")
    database.drop_table("t")
    report = database.vacuum()
    assert report.in_use == ["t"]
    assert all(path.exists() for path in foreign)
    assert set(database.check().unknown) == set(foreign)


def test_nothing_is_removed_where_a_manifest_is_damaged(database):
    create(database, "u", [1])
    create(database, "u", [2], or_replace=True)
    append(database, "t", [2])
    folder = database.table("t").folder
    (folder.fragments / "0123456789abcde-0000.arrow").write_text("x")
    path = folder.manifest(2)
    path.write_bytes(path.read_bytes().replace(b"append", b"appenD"))
    before = [file for file in files(database) if "tables/t" in file]
    with pytest.raises(CorruptionError) as caught:
        database.vacuum()
    assert caught.value.path == path
    assert [file for file in files(database) if "tables/t" in file] == before
    assert versions(database, "u") == [2]
    path.unlink()  # the way out: the version before counts again
    with pytest.raises(CorruptionError, match="missing"):
        database.vacuum()
    folder.commit(2).unlink()
    assert values_of(database, "t") == [1]
    database.vacuum()
    assert database.check().clean


def test_a_read_only_lock_is_an_error_not_a_silent_nothing(database, monkeypatch):
    append(database, "t", [2])
    real = os.open

    def refuse(path, flags, *rest):
        if flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StorageError, match="Permission denied"):
        database.vacuum()


def test_the_lock_bytes_of_vacuum_and_versions_are_apart():
    assert VACUUM > 10**18
