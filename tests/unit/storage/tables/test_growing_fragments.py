"""Encoded rows of several heaps make a fragment."""

from pathlib import Path

import pyarrow as pa
import pytest

from bamquery.errors import StorageError
from bamquery.storage.database.database import Database
from bamquery.storage.fragments.rows import FragmentRows
from bamquery.storage.tables import background
from bamquery.storage.tables import writer as table_writer
from tests.unit.storage.sample_tables import SCHEMA, append, batch


@pytest.fixture
def database(tmp_path):
    with Database.open(tmp_path / "db") as database:
        yield database


def fragment_rows(database):
    with database.table("t").snapshot() as snapshot:
        return [entry.rows for entry in snapshot.entries]


def decoded(database):
    with database.table("t").snapshot() as snapshot:
        return [
            value
            for f in snapshot.fragments
            for chunk in FragmentRows(f).column(0)
            for value in chunk.to_pylist()
        ]


def test_encoded_rows_of_several_heaps_make_a_fragment(database, monkeypatch):
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 8 * 8192)  # heaps of 4,096 rows, 5 KB packed
    with database.create_table("t", SCHEMA, encoding="auto") as writer:
        for start in range(0, 400_000, 10_000):
            writer.write(batch(range(start, start + 10_000)))
        writer.commit()
    rows = fragment_rows(database)
    assert sum(rows) == 400_000
    assert len(rows) > 1
    assert all(count % 4096 == 0 and count > 2 * 4096 for count in rows[:-1])
    assert decoded(database) == list(range(400_000))
    with database.table("t").snapshot() as snapshot:
        sizes = [entry.data_bytes for entry in snapshot.entries[:-1]]
    assert min(sizes) > 8 * 8192 // 3


def test_encoded_rows_that_were_not_written_yet_are_not_merged_into_older_ones(database, monkeypatch):
    database.create_table("t", SCHEMA, encoding="auto").commit()
    for number in range(table_writer.MERGED_APPENDS):
        append(database, "t", [number])
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 8 * 1024)
    with database.table("t").append() as writer:
        writer.write(batch(range(3000)))
        writer.commit()
    assert decoded(database) == [*range(table_writer.MERGED_APPENDS), *range(3000)]


def test_an_encoded_fragment_has_no_more_rows_than_it_may(database, monkeypatch):
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 8 * 4096)
    monkeypatch.setattr(background, "MAX_FRAGMENT_ROWS", 10_000)
    with database.create_table("t", SCHEMA, encoding="auto") as writer:
        writer.write(batch([7] * 30_000))
        writer.commit()
    assert fragment_rows(database) == [8192, 8192, 8192, 5424]
    assert decoded(database) == [7] * 30_000


def test_after_an_abort_nothing_of_encoded_rows_is_left(database, monkeypatch):
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 8 * 1024)
    writer = database.create_table("t", SCHEMA, encoding="auto")
    writer.write(batch(range(5000)))
    writer.abort()
    assert not list(Path(database.path).rglob("*.arrow"))


def test_a_heap_that_cannot_be_encoded_commits_nothing(database, monkeypatch):
    """Not even the rows of heaps before, which were in memory only."""
    monkeypatch.setattr(table_writer, "FRAGMENT_BYTES", 64 << 10)
    schema = pa.schema([("s", pa.large_string())])
    good = pa.array([f"text {n}" for n in range(1024)], pa.large_string())
    bad = pa.Array.from_buffers(good.type, 1024, [None, good.buffers()[1], pa.py_buffer(b"\xff" * 20_000)])
    with database.create_table("t", schema, encoding="auto") as writer:
        for _ in range(4):
            writer.write(pa.record_batch([good], schema=schema))
        writer.write(pa.record_batch([bad], schema=schema))
        with pytest.raises(StorageError, match=r'tables/t.*column "s" cannot be written: .*UTF') as caught:
            writer.commit()
        assert caught.value.path is not None
    assert not list(Path(database.path).rglob("*.arrow"))
    with pytest.raises(StorageError, match="closed"):
        writer.commit()
