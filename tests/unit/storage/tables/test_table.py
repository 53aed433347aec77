import threading

import pytest

from bamquery.errors import CatalogError, ConflictError, CorruptionError, StorageError
from bamquery.storage.database.database import Database
from tests.unit.storage.sample_tables import (
    SCHEMA,
    OtherError,
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
        create(database, "t")
        yield database


@pytest.fixture
def other(database):
    with OtherProcess(database) as other:
        yield other


def test_append_adds_rows_at_the_end(database):
    assert append(database, "t", [4, None]) == 2
    assert append(database, "t", [6]) == 3
    assert values_of(database, "t") == [1, 2, 3, 4, None, 6]


def test_an_append_of_nothing_makes_no_version(database):
    with database.table("t").append() as writer:
        assert writer.commit() == 1
    assert append(database, "t", []) == 1
    assert [version.version for version in database.table("t").versions()] == [1]


def test_a_table_without_rows(database):
    assert create(database, "empty", []) == 1
    with database.table("empty").snapshot() as snapshot:
        assert snapshot.rows == 0
        assert snapshot.fragments == ()
        assert snapshot.schema == SCHEMA
    assert append(database, "empty", [1]) == 2
    assert values_of(database, "empty") == [1]


def test_old_versions_can_be_read_until_vacuum(database):
    table = database.table("t")
    append(database, "t", [4])
    with table.snapshot(1) as old, table.snapshot() as new:
        assert (old.version, old.rows) == (1, 3)
        assert (new.version, new.rows) == (2, 4)
    assert [(v.version, v.operation, v.rows) for v in table.versions()] == [
        (1, "create", 3),
        (2, "append", 4),
    ]
    database.vacuum()
    with pytest.raises(CatalogError, match='version 1 of table "t" is not stored; stored: 2'):
        table.snapshot(1)
    with pytest.raises(CatalogError, match="not stored"):
        table.snapshot(3)


def test_a_snapshot_keeps_its_version_while_others_commit(database):
    with database.table("t").snapshot() as snapshot:
        append(database, "t", [4])
        create(database, "t", [9], or_replace=True)
        database.drop_table("t")
        database.vacuum()
        assert rows_of(snapshot)["a"].to_pylist() == [1, 2, 3]


def test_fragments_are_opened_once_for_all_snapshots_of_a_database(database):
    append(database, "t", [4])
    with database.table("t").snapshot() as first, database.table("t").snapshot() as second:
        assert first.fragments[0] is second.fragments[0]
    append(database, "t", [5])
    with database.table("T").snapshot() as third:
        assert third.fragments[:2] == first._fragments


def test_a_closed_snapshot_says_so(database):
    snapshot = database.table("t").snapshot()
    snapshot.close()
    snapshot.close()
    with pytest.raises(StorageError, match="no longer held"):
        snapshot.fragments  # noqa: B018


def test_of_two_writers_one_wins_and_the_other_is_told(database):
    with database.table("t").append() as winner, database.table("t").append() as loser:
        winner.write(batch([4]))
        loser.write(batch([5]))
        assert winner.commit() == 2
        with pytest.raises(ConflictError, match="another writer has committed version 2") as caught:
            loser.commit()
    assert caught.value.path.name == "00000002.json"
    assert values_of(database, "t") == [1, 2, 3, 4]
    assert database.check().litter == []
    assert append(database, "t", [5]) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda database: append(database, "t", [4]),
        lambda database: create(database, "t", [4], or_replace=True),
        lambda database: database.drop_table("t"),
        lambda database: append(database, "t", [4]) and database.table("t").optimize(),
    ],
    ids=["append", "replace", "drop", "optimize"],
)
@pytest.mark.parametrize("or_replace", [False, True], ids=["append", "replace"])
def test_every_pair_of_changes_conflicts(database, change, or_replace):
    if or_replace:
        writer = database.create_table("t", SCHEMA, or_replace=True)
    else:
        writer = database.table("t").append()
    change(database)
    before = database.has_table("t") and values_of(database, "t")
    with pytest.raises(ConflictError):
        fill(writer, [5])
    assert (database.has_table("t") and values_of(database, "t")) == before


def test_two_creators_of_one_table(database):
    with database.create_table("n", SCHEMA) as winner, database.create_table("N", SCHEMA) as loser:
        winner.commit()
        with pytest.raises(ConflictError):
            loser.commit()
    assert database.table("n").name == "n"


def test_a_drop_beside_an_append_conflicts(database):
    with database.table("t").append() as writer:
        writer.write(batch([4]))
        database.drop_table("t")
        with pytest.raises(ConflictError):
            writer.commit()
    assert not database.has_table("t")


def test_writers_in_two_processes_conflict(database, other):
    other.run("writer = database.table('t').append()")
    other.run("writer.write(batch([4]))")
    append(database, "t", [5])
    with pytest.raises(OtherError, match=r"ConflictError: .*another writer has committed version 2"):
        other.run("writer.commit()")
    assert other.run("append(database, 't', [6])") == 3
    assert values_of(database, "t") == [1, 2, 3, 5, 6]


def test_a_reader_in_another_process_keeps_its_version(database, other):
    other.run("snapshot = database.table('t').snapshot()")
    append(database, "t", [4])
    create(database, "t", [9], or_replace=True)
    report = database.vacuum()
    assert report.in_use == ["t"]
    assert other.run("rows_of(snapshot)['a'].to_pylist()") == [1, 2, 3]
    other.run("snapshot.close()")
    assert database.vacuum().in_use == []
    assert [version.version for version in database.table("t").versions()] == [3]


def test_a_table_being_dropped_elsewhere_is_kept_for_its_readers(database, other):
    with database.table("t").snapshot() as snapshot:
        other.run("database.drop_table('t')")
        assert other.run("database.vacuum().in_use") == ["t"]
        assert rows_of(snapshot)["a"].to_pylist() == [1, 2, 3]
    assert other.run("database.vacuum().tables") == 1
    assert not (database.path / "tables" / "t").exists()


def test_many_writers_in_many_processes_lose_nothing(database):
    code = """
done = []
while len(done) < 8:
    try:
        append(database, 't', [{number} * 100 + len(done)])
        done.append(1)
    except ConflictError:
        pass
    if len(done) % 3 == 0:
        database.vacuum()
"""
    others = [OtherProcess(database) for _ in range(3)]
    try:
        for number, other in enumerate(others, 1):
            other.begin(code.format(number=number))
        for other in others:
            other.answer()
    finally:
        for other in others:
            other.kill()
    values = values_of(database, "t")
    assert values[:3] == [1, 2, 3]
    for number in (1, 2, 3):
        assert [v for v in values[3:] if v // 100 == number] == [number * 100 + i for i in range(8)]
    assert database.check().clean


def test_readers_always_see_a_whole_version_while_writers_and_vacuum_work(database, other):
    create(database, "s", [0] * 10)
    other.begin("""
for number in range(1, 60):
    if number % 5 == 0:
        database.drop_table('s')
        database.vacuum()
        create(database, 's', [number] * 10)
    else:
        create(database, 's', [number] * 10, or_replace=True)
    database.vacuum()
""")
    failures, seen = [], []
    stop = threading.Event()

    def read():
        try:
            while not stop.is_set():
                try:
                    values = values_of(database, "s")
                except CatalogError:
                    continue
                assert len(values) == 10
                assert len(set(values)) == 1
                seen.append(values[0])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    other.answer()
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(set(seen)) > 3
    assert values_of(database, "s") == [59] * 10


def test_a_missing_lock_file_is_damage_unless_the_table_is_gone(database):
    lock = database.table("t").folder.lock
    lock.unlink()
    for action in (database.table("t").snapshot, database.table("t").append):
        with pytest.raises(CorruptionError, match="create an empty file there") as caught:
            action()
        assert caught.value.path == lock
    lock.touch()
    assert values_of(database, "t") == [1, 2, 3]
    database.drop_table("t")
    lock.unlink()
    with pytest.raises(CatalogError):
        database.table("t")
    create(database, "t", [4])
    assert values_of(database, "t") == [4]


def test_a_forked_child_cannot_use_its_parents_writer(database, other):
    code = """
import os
writer = database.table('t').append()
writer.write(batch([4]))
child = os.fork()
if child == 0:
    try:
        writer.commit()
    except StorageError as error:
        os._exit(7 if 'forked' in str(error) else 1)
    os._exit(2)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
version = writer.commit()
"""
    other.run("import warnings; warnings.simplefilter('ignore')")
    other.run(code)
    assert other.run("[status, version]") == [7, 2]
    assert values_of(database, "t") == [1, 2, 3, 4]
