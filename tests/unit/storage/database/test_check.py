import pytest

from bamquery.errors import CorruptionError
from bamquery.storage.database.database import Database
from tests.unit.storage.sample_tables import SCHEMA, OtherProcess, append, batch, create


@pytest.fixture
def database(tmp_path):
    with Database.open(tmp_path / "db") as database:
        create(database, "t", range(3000))
        append(database, "t", [1, None])
        create(database, "u", [7])
        yield database


def test_an_undamaged_database(database):
    report = database.check()
    assert report.clean
    assert (report.tables, report.versions, report.fragments) == (2, 3, 3)
    assert report.bytes == sum(path.stat().st_size for path in database.path.rglob("*.arrow"))
    assert (report.errors, report.litter, report.unknown) == ([], [], [])


def test_an_empty_database(tmp_path):
    with Database.open(tmp_path / "db") as database:
        report = database.check()
    assert report.clean
    assert (report.tables, report.versions, report.fragments, report.bytes) == (0, 0, 0, 0)


def test_progress_goes_from_nothing_to_all(database):
    heard = []
    report = database.check(lambda done, total: heard.append((done, total)))
    assert heard[0] == (0, report.bytes)
    assert heard[-1] == (report.bytes, report.bytes)
    assert heard == sorted(heard)
    assert len(heard) == report.fragments + 1


def paths(database, pattern):
    return sorted(database.path.rglob(pattern))


@pytest.mark.parametrize("pattern", ["*.arrow", "0*.json", "lock"])
def test_a_missing_file_is_named(database, pattern):
    folder = database.table("t").folder
    for path in paths(database, pattern):
        if path == folder.manifest(1) or path.name == "00000001.json":
            continue  # an old version that is gone is what vacuum leaves
        content = path.read_bytes()
        path.unlink()
        report = database.check()
        assert [error.path for error in report.errors] == [path]
        assert report.litter == []
        path.write_bytes(content)
        assert database.check().clean


@pytest.mark.parametrize("pattern", ["*.arrow", "0*.json"])
def test_a_truncated_file_is_named(database, pattern):
    for path in paths(database, pattern):
        content = path.read_bytes()
        for size in (0, 1, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:size])
            report = database.check()
            assert {error.path for error in report.errors} == {path}, size
            assert report.litter == []
        path.write_bytes(content + b"\0")
        assert {error.path for error in database.check().errors} == {path}
        path.write_bytes(content)
        assert database.check().clean


def test_damage_in_one_table_does_not_hide_that_in_another(database):
    damaged = [
        paths(database, "tables/t/fragments/*.arrow")[0],
        paths(database, "tables/u/manifests/*.json")[0],
    ]
    for path in damaged:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0x10
        path.write_bytes(data)
    report = database.check()
    assert not report.clean
    assert {error.path for error in report.errors} == set(damaged)
    assert all(isinstance(error, CorruptionError) for error in report.errors)


def test_a_damaged_file_of_an_old_version_is_found_too(database):
    with database.table("t").snapshot(1) as held:
        path = held.fragments[0].path
        create(database, "t", [1], or_replace=True)
        data = bytearray(path.read_bytes())
        data[5000] ^= 1
        path.write_bytes(data)
        assert [error.path for error in database.check().errors] == [path]
    database.vacuum()
    assert database.check().clean


def test_versions_that_contradict_each_other(database):
    table = database.table("t")
    path = table.folder.manifest(2)
    manifest = table.folder.read(2)
    object.__setattr__(manifest.fragments[0], "data_bytes", manifest.fragments[0].data_bytes + 1)
    path.write_bytes(manifest.to_bytes())
    report = database.check()
    assert "describes fragment" in str(report.errors[0])
    assert report.errors[0].path == path


def test_a_dropped_table_is_litter(database):
    database.drop_table("u")
    report = database.check()
    assert report.clean
    assert report.tables == 1
    assert report.litter == [database.path / "tables" / "u"]


def test_what_a_live_writer_is_making_is_no_litter(database):
    with OtherProcess(database) as other:
        other.run("import bamquery.storage.tables.writer as w; w.FRAGMENT_BYTES = 8 * 1024")
        other.run("writer = database.create_table('n', SCHEMA)")
        other.run("writer.write(batch(range(5000)))")
        other.run("writer._background.settle()")
        report = database.check()
        assert report.clean
        assert report.litter == []
        other.kill()
        assert database.path / "tables" / "n" in database.check().litter


def test_check_holds_what_it_reads(database):
    removed = []

    def progress(done, total):
        if not removed:
            with OtherProcess(database) as other:
                other.run("create(database, 't', [5], or_replace=True)")
                removed.append(other.run("database.vacuum().files"))

    assert database.check(progress).clean
    assert removed == [0]
    assert database.vacuum().files == 4
    assert batch([1]).schema == SCHEMA
