import gc
import threading
import weakref

import pytest

from bamquery.errors import CorruptionError
from bamquery.storage.database.database import Database
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.tables.snapshot import FragmentCache
from tests.unit.storage.sample_tables import append, create


@pytest.fixture
def database(tmp_path):
    with Database.open(tmp_path / "db") as database:
        create(database, "t", [1])
        append(database, "t", [2])
        yield database


def test_fragments_are_opened_at_first_use_and_once(database, monkeypatch):
    opened = []
    real = Fragment.open.__func__

    def counting(cls, folder, entry, *rest):
        opened.append(entry.id)
        return real(cls, folder, entry, *rest)

    monkeypatch.setattr(Fragment, "open", classmethod(counting))
    with database.table("t").snapshot() as snapshot:
        assert opened == []
        assert [fragment.rows for fragment in snapshot.fragments] == [1, 1]
    threads = [threading.Thread(target=lambda: database.table("T").snapshot().fragments) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 2
    append(database, "t", [3])
    with database.table("t").snapshot() as snapshot:
        assert len(snapshot.fragments) == 3
    assert len(opened) == 3


def test_fragments_of_the_version_read_last_stay_in_memory_and_older_ones_go(database):
    cache = FragmentCache()
    table = database.table("t")
    with table.snapshot() as snapshot:
        first = weakref.ref(cache.open(table.folder, snapshot.entries, snapshot.schema)[0])
    gc.collect()
    assert first() is not None
    table.optimize()
    with table.snapshot() as snapshot:
        cache.open(table.folder, snapshot.entries, snapshot.schema)
    gc.collect()
    assert first() is None


def test_a_missing_file_is_an_error_that_names_it_each_time(database):
    with database.table("t").snapshot() as snapshot:
        path = snapshot._folder.fragments / snapshot.entries[1].vectors_name
        path.unlink()
        for _ in range(2):
            with pytest.raises(CorruptionError) as caught:
                snapshot.fragments  # noqa: B018
            assert caught.value.path == path
