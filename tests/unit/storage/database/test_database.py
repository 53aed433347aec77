import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from bamquery.errors import CatalogError, CorruptionError, StorageError
from bamquery.storage.database import database as database_module
from bamquery.storage.database.database import Database
from tests.faults.failing import FailingFileSystem

SCHEMA = pa.schema([("a", pa.int64())])


def create(database, name, values=(1, 2, 3), **options):
    with database.create_table(name, SCHEMA, **options) as writer:
        writer.write(pa.record_batch([pa.array(values, pa.int64())], schema=SCHEMA))
        return writer.commit()


def values(database, name):
    with database.table(name).snapshot() as snapshot:
        tables = [pa.ipc.open_file(pa.memory_map(str(f.path))).read_all() for f in snapshot.fragments]
        return pa.concat_tables([SCHEMA.empty_table(), *tables])["a"].to_pylist()


@pytest.fixture
def database(tmp_path):
    with Database.open(tmp_path / "db") as database:
        yield database


def test_a_missing_folder_is_made_with_its_parents(tmp_path):
    with Database.open(tmp_path / "some" / "where" / "db") as database:
        assert database.table_names() == []
        assert database.path == tmp_path / "some" / "where" / "db"
    assert os.listdir(tmp_path / "some" / "where" / "db") == ["bamquery.json"]


def test_an_empty_folder_becomes_a_database(tmp_path):
    Database.open(tmp_path).close()
    assert (tmp_path / "bamquery.json").is_file()


@pytest.mark.parametrize("fails_at", range(12))
def test_a_full_disk_leaves_no_draft(tmp_path, fails_at):
    """Whichever operation fails, and all after it: a marker or nothing is there."""
    filesystem = FailingFileSystem(fails_at, stays_full=True)
    with suppress(StorageError):
        Database.open(tmp_path / "db", filesystem).close()
    left = os.listdir(tmp_path / "db") if (tmp_path / "db").exists() else []
    assert left in ([], ["bamquery.json"])
    Database.open(tmp_path / "db").close()
    assert os.listdir(tmp_path / "db") == ["bamquery.json"]


@pytest.mark.parametrize("make", [True, False])
def test_another_process_makes_it_meanwhile(tmp_path, monkeypatch, make):
    """It is there, with a table, once this one has looked for it in vain."""
    read = database_module.read_marker
    looks = []

    def late(folder):
        looks.append(folder)
        if len(looks) > 1:
            return read(folder)
        monkeypatch.setattr(database_module, "read_marker", read)
        with Database.open(folder) as other:
            create(other, "t")
        monkeypatch.setattr(database_module, "read_marker", late)
        raise FileNotFoundError(folder)

    monkeypatch.setattr(database_module, "read_marker", late)
    with Database.open(tmp_path / "db", create=make) as database:
        assert values(database, "t") == [1, 2, 3]


def test_what_was_committed_is_there_when_opened_again(tmp_path):
    with Database.open(tmp_path / "db") as database:
        create(database, "t")
    with Database.open(str(tmp_path / "db")) as database:
        assert values(database, "t") == [1, 2, 3]


def test_a_path_relative_to_a_folder_that_is_left_later(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Database.open("db") as database:
        os.chdir("/")
        create(database, "t")
    assert (tmp_path / "db" / "tables" / "t").is_dir()


def test_without_create_a_missing_database_is_an_error(tmp_path):
    with pytest.raises(StorageError, match="there is no database"):
        Database.open(tmp_path / "db", create=False)
    assert not (tmp_path / "db").exists()


def test_in_memory_is_a_folder_that_goes(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Database.open(":memory:") as database:
        create(database, "t")
        assert database.path.parent == tmp_path
    assert os.listdir(tmp_path) == []
    forgotten = Database.open(":memory:")
    create(forgotten, "t")
    del forgotten
    assert os.listdir(tmp_path) == []


def test_in_memory_without_room_for_a_folder(monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/proc/no/where")
    with pytest.raises(StorageError, match="cannot make a folder"):
        Database.open(":memory:")


def test_folders_of_something_else_are_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(StorageError, match=r"nor empty \('thesis.tex'\): name another folder"):
        Database.open(tmp_path)
    assert os.listdir(tmp_path) == ["thesis.tex"]
    with pytest.raises(StorageError, match="a file, not a database"):
        Database.open(tmp_path / "thesis.tex")
    with pytest.raises(StorageError):
        Database.open(tmp_path / "thesis.tex" / "db")


@pytest.mark.parametrize(
    "marker",
    [b"", b"{", b"[]", b"{}", b'{"format": "x", "format_version": 1}', b"\xff", b"[" * 50_000, bytes(70_000)],
)
def test_a_damaged_marker_is_named(tmp_path, marker):
    (tmp_path / "bamquery.json").write_bytes(marker)
    with pytest.raises(CorruptionError, match=r"bamquery\.json: damaged"):
        Database.open(tmp_path)


def test_a_later_format_asks_for_an_upgrade(tmp_path):
    (tmp_path / "bamquery.json").write_text('{"format": "bamquery database", "format_version": 2}')
    with pytest.raises(StorageError, match="upgrade"):
        Database.open(tmp_path)


def test_leftovers_of_a_killed_creation_are_no_obstacle(tmp_path):
    (tmp_path / "bamquery.json.0123456789abcde.tmp").write_text("{")
    with Database.open(tmp_path) as database:
        assert database.check().litter == [tmp_path / "bamquery.json.0123456789abcde.tmp"]
        assert database.vacuum().files == 1
    assert os.listdir(tmp_path) == ["bamquery.json"]


def test_many_may_create_one_database_at_once(tmp_path):
    code = (
        "import sys, pyarrow as pa; from bamquery.storage.database.database import Database\n"
        "sys.stdin.readline()\n"
        "with Database.open(sys.argv[1]) as database:\n"
        "    with database.create_table(sys.argv[2], pa.schema([('a', pa.int64())])) as w: w.commit()\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "x" / "db"), f"t{i}"], stdin=subprocess.PIPE
        )
        for i in range(4)
    ]
    for process in processes:
        process.stdin.write(b"\n")
        process.stdin.flush()
    for process in processes:
        assert process.wait() == 0
        process.stdin.close()
    with Database.open(tmp_path / "x" / "db") as database:
        assert database.table_names() == ["t0", "t1", "t2", "t3"]
        report = database.check()
        assert report.clean
        assert report.litter == []


def test_names_are_compared_without_case_and_shown_as_written(database):
    create(database, "Trips")
    create(database, "alpha")
    create(database, "Straße / Ω")
    assert database.table_names() == ["alpha", "Straße / Ω", "Trips"]
    assert database.table("tRIPS").name == "Trips"
    assert database.has_table("STRASSE / ω")
    assert not database.has_table("trip")
    with pytest.raises(CatalogError, match='table "Trips" exists already'):
        create(database, "TRIPS")


def test_an_unknown_table_suggests_the_nearest(database):
    create(database, "trips")
    with pytest.raises(CatalogError, match=r'"tirps" does not exist\. Did you mean "trips"'):
        database.table("tirps")
    with pytest.raises(CatalogError, match="does not exist"):
        database.drop_table("tirps")


@pytest.mark.parametrize("name", ["", "x" * 300, "\ud800"])
def test_impossible_names(database, name):
    for action in (database.table, database.has_table, database.drop_table, lambda n: create(database, n)):
        with pytest.raises(CatalogError):
            action(name)


def test_schemas_that_tables_cannot_have(database):
    for schema, message in [
        (pa.schema([]), "at least one column"),
        (pa.schema([("s", pa.string())]), "cast it first"),
        (pa.schema([("s", pa.list_(pa.int8()))]), "leave the column out"),
        (pa.schema([("a", pa.int8()), ("A", pa.int8())]), "same name"),
    ]:
        with pytest.raises(StorageError, match=message):
            database.create_table("t", schema)
    assert database.table_names() == []


def test_a_schema_loses_its_metadata_and_every_column_may_hold_nulls(database):
    field = pa.field("a", pa.int64(), nullable=False, metadata={"x": "y"})
    with database.create_table("t", pa.schema([field], metadata={"pandas": "{}"})) as writer:
        assert writer.schema == SCHEMA
        assert not writer.schema.metadata
        writer.commit()


def test_nothing_is_seen_before_the_commit(database):
    with database.create_table("t", SCHEMA) as writer:
        writer.write(pa.record_batch([pa.array([1])], schema=SCHEMA))
        assert not database.has_table("t")
        assert database.table_names() == []
        with pytest.raises(CatalogError):
            database.table("t")
        assert writer.commit() == 1
    assert values(database, "t") == [1]


def test_an_abandoned_table_leaves_no_trace(database):
    before = sorted(database.path.rglob("*"))

    def fail():
        with database.create_table("t", SCHEMA) as writer:
            writer.write(pa.record_batch([pa.array([1])], schema=SCHEMA))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [path for path in database.path.rglob("*") if path.name != "tables"] == before


def test_or_replace_replaces_in_one_step(database):
    assert create(database, "t", [1]) == 1
    other = pa.schema([("b", pa.large_string())])
    with database.table("t").snapshot() as old:
        with database.create_table("T", other, or_replace=True) as writer:
            assert values(database, "t") == [1]
            assert writer.commit() == 2
        assert old.schema == SCHEMA
        assert old.rows == 1
        assert old.fragments[0].rows == 1
    assert database.table_names() == ["T"]
    with database.table("t").snapshot() as new:
        assert new.schema == other
        assert new.rows == 0
    assert [version.operation for version in database.table("t").versions()] == ["create", "replace"]


def test_or_replace_of_nothing_creates(database):
    assert create(database, "t", or_replace=True) == 1
    assert database.table("t").versions()[0].operation == "create"


def test_a_dropped_table_is_gone_and_may_come_again(database):
    create(database, "t", [1])
    table = database.table("t")
    database.drop_table("T")
    assert database.table_names() == []
    for action in (
        lambda: database.table("t"),
        lambda: database.drop_table("t"),
        table.snapshot,
        table.append,
        table.drop,
        table.optimize,
        lambda: table.snapshot(2),
    ):
        with pytest.raises(CatalogError):
            action()
    assert create(database, "t", [2]) == 3
    assert values(database, "t") == [2]
    assert [version.operation for version in table.versions()] == ["create", "drop", "create"]


def test_a_table_dropped_and_vacuumed_may_come_again(database):
    create(database, "t", [1])
    database.drop_table("t")
    assert database.vacuum().tables == 1
    assert os.listdir(database.path / "tables") == []
    assert create(database, "t", [2]) == 1
    assert values(database, "t") == [2]


def test_a_closed_database_says_so(tmp_path):
    database = Database.open(tmp_path / "db")
    create(database, "t")
    database.close()
    database.close()
    for action in (
        database.table_names,
        database.vacuum,
        database.check,
        lambda: database.table("t"),
        lambda: create(database, "u"),
    ):
        with pytest.raises(StorageError, match="closed"):
            action()


def test_a_damaged_table_does_not_take_the_others_along(database):
    create(database, "Good")
    create(database, "Bad")
    manifest = database.path / "tables" / "bad" / "manifests" / "00000001.json"
    manifest.write_bytes(manifest.read_bytes()[:-5])
    assert database.table_names() == ["bad", "Good"]
    assert values(database, "good") == [1, 2, 3]
    for action in (
        lambda: database.table("bad"),
        lambda: database.has_table("bad"),
        lambda: create(database, "bad"),
        lambda: create(database, "bad", or_replace=True),
        lambda: database.drop_table("bad"),
    ):
        with pytest.raises(CorruptionError) as caught:
            action()
        assert caught.value.path == manifest


def test_foreign_folders_among_the_tables_are_no_tables(database):
    create(database, "t")
    (database.path / "tables" / "lost+found").mkdir()
    (database.path / "tables" / "file").write_text("x")
    assert database.table_names() == ["t"]
    database.vacuum()
    assert (database.path / "tables" / "lost+found").is_dir()


def test_many_threads_create_read_and_drop(database):
    failures = []

    def work(number):
        try:
            for turn in range(5):
                create(database, f"t{number}", [number, turn])
                assert values(database, f"T{number}") == [number, turn]
                database.vacuum()
                database.drop_table(f"t{number}")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    database.vacuum()
    assert os.listdir(database.path / "tables") == []


READ_ONLY = """
import os, sys
import pyarrow as pa
from bamquery.errors import StorageError
from bamquery.storage.database.database import Database
# While Python's own files can be read, which may be in a folder of root's.
from bamquery.storage.database import check
from bamquery.storage.fragments import check as fragment_check
from bamquery.storage.tables import table, vacuum
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
with Database.open(sys.argv[1]) as database:
    with database.table("t").snapshot() as snapshot:
        assert snapshot.rows == 3, snapshot.rows
        assert snapshot.fragments[0].rows == 3
    assert database.check().clean
    for action in (database.vacuum, database.table("t").append, lambda: database.drop_table("t"),
                   lambda: database.create_table("u", pa.schema([("a", pa.int64())]))):
        try:
            writer = action()
            writer.write(pa.record_batch([pa.array([1])], names=["a"]))
            writer.commit()
        except StorageError as error:
            assert "Permission denied" in str(error), error
            continue
        raise AssertionError(action)
"""


def test_a_folder_without_write_permission_can_be_read():
    # Not below tmp_path, whose parents only its owner may enter.
    path = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    try:
        with Database.open(path / "db") as database:
            create(database, "t")
        subprocess.run(["chmod", "-R", "a=rX", str(path)], check=True)
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(path / "db")], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(path)], check=True)
        shutil.rmtree(path)
