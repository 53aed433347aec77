import pytest

from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.database.database import Database
from bamquery.storage.files.locks import LockFile
from bamquery.storage.tables import folder as table_folder
from bamquery.storage.tables.folder import TableFolder, list_names, pin_latest, pin_version, table_folders
from tests.unit.storage.sample_tables import append, create


@pytest.fixture
def database(tmp_path):
    with Database.open(tmp_path / "db") as database:
        create(database, "t", [1])
        append(database, "t", [2])
        yield database


@pytest.fixture
def folder(database):
    return database.table("t").folder


def test_where_things_are(database, folder):
    assert folder.path == database.path / "tables" / "t"
    assert folder.versions() == [1, 2]
    assert folder.latest() == 2
    assert folder.read(2).rows == 2
    assert folder.read_latest() == folder.read(2)
    assert table_folders(database.path) == [("t", folder)]


def test_a_folder_that_is_not_there_has_no_versions(tmp_path):
    folder = TableFolder(tmp_path / "none")
    assert folder.versions() == []
    assert folder.latest() == 0
    assert folder.read_latest() is None
    assert pin_latest(folder) is None
    assert pin_version(folder, 1) is None
    with pytest.raises(FileNotFoundError):
        folder.read(1)


def test_a_folder_that_cannot_be_listed(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="cannot list"):
        list_names(tmp_path / "file")


def test_a_pin_holds_its_version_until_closed(folder):
    pin = pin_latest(folder)
    other = pin_version(folder, 1)
    assert (pin.version, pin.manifest.rows) == (2, 2)
    assert (other.version, other.manifest.rows) == (1, 1)
    with LockFile(folder.lock, exclusive=True) as vacuum:
        assert not vacuum.try_exclusive(2)
        pin.close()
        assert vacuum.try_exclusive(2)
        assert not vacuum.try_exclusive(1)
        other.close()
        assert vacuum.try_exclusive(1)


def test_a_version_that_vacuum_is_removing_is_not_waited_for_but_looked_for_anew(folder, monkeypatch):
    with LockFile(folder.lock, exclusive=True) as vacuum:
        assert vacuum.try_exclusive(2)
        assert pin_version(folder, 2) is None
        monkeypatch.setattr(table_folder, "WAIT_SECONDS", 0.05)
        with pytest.raises(StorageError, match="come and go too quickly"):
            pin_latest(folder)


def test_a_listing_that_misses_the_latest_version_is_made_again(database, folder, monkeypatch):
    """Names that come or go during a listing may be missing from it: so says POSIX of readdir."""
    real = table_folder.list_names
    listings = []

    def list_names(path):
        names = real(path)
        listings.append(path)
        return ["00000001.json"] if len(listings) == 1 else names

    monkeypatch.setattr(table_folder, "list_names", list_names)
    pin = pin_latest(folder)
    assert pin.version == 2
    pin.close()


def test_a_version_that_goes_between_listing_and_reading_is_looked_for_anew(database, folder, monkeypatch):
    real = table_folder.read_manifest
    read = []

    def read_manifest(path):
        read.append(path.name)
        if len(read) == 1:
            raise FileNotFoundError(path)
        return real(path)

    monkeypatch.setattr(table_folder, "read_manifest", read_manifest)
    assert folder.read_latest().version == 2
    read.clear()
    pin = pin_latest(folder)
    assert pin.version == 2
    pin.close()


def test_no_descriptor_is_kept_where_pinning_fails(folder, monkeypatch):
    folder.manifest(2).write_bytes(b"damaged")
    closed = []
    real = LockFile.close
    monkeypatch.setattr(LockFile, "close", lambda self: (closed.append(self), real(self)))
    for action in (lambda: pin_latest(folder), lambda: pin_version(folder, 2)):
        with pytest.raises(CorruptionError):
            action()
    assert len(closed) == 2
