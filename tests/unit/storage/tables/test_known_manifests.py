"""Manifests are parsed when they change, and only then."""

import os
import time
from collections import Counter

import pyarrow as pa
import pytest

import bamquery
from bamquery.errors import CorruptionError
from bamquery.storage.database.database import Database
from bamquery.storage.tables import known_manifests
from bamquery.storage.tables.manifest import Manifest
from tests.unit.storage.sample_tables import append, create


@pytest.fixture
def counted(monkeypatch):
    """How often a manifest of each table was read and parsed; none is known to begin with."""
    known = known_manifests.KnownManifests()
    monkeypatch.setattr(known_manifests, "KNOWN_MANIFESTS", known)
    counts = Counter()
    read, parse = known_manifests.read_content, Manifest.from_bytes.__func__

    def read_content(descriptor, path, most):
        counts["read", path.parent.parent.name] += 1
        return read(descriptor, path, most)

    def from_bytes(cls, data, path):
        counts["parsed", path.parent.parent.name] += 1
        return parse(cls, data, path)

    monkeypatch.setattr(known_manifests, "read_content", read_content)
    monkeypatch.setattr(Manifest, "from_bytes", classmethod(from_bytes))
    return counts


def settle(monkeypatch):
    """As if all files had been there for long."""
    monkeypatch.setattr(known_manifests, "_SETTLED_NS", -(10**12))


def test_a_wide_table_is_parsed_once_for_many_statements(tmp_path, counted, monkeypatch):
    """Its manifest has more than a MB, as one of 20,000 columns with short names."""
    with bamquery.connect(tmp_path / "db", device="cpu") as con:
        con.load("wide", pa.table({f"column{i}{'x' * 990}": [1, 2] for i in range(1_000)}))
        con.load("small", pa.table({"a": [1, 2, 3]}))
        settle(monkeypatch)
        con.sql("SELECT count(*) FROM wide").fetchall()
        con.sql("FROM small").fetchall()
        counted.clear()
        for _ in range(3):
            assert con.sql("SELECT count(*) FROM wide").fetchall() == [(2,)]
            con.sql("FROM small").fetchall()
            con.sql("SHOW TABLES").fetchall()
        assert counted == {}
    with bamquery.connect(tmp_path / "db", device="cpu") as con:
        con.sql("FROM small").fetchall()
        assert counted == {}


def test_a_young_file_is_read_again_and_parsed_when_it_differs(tmp_path, counted):
    with Database.open(tmp_path / "db") as database:
        create(database, "t", [1])
        folder = database.table("t").folder
        counted.clear()
        first = folder.read(1)
        assert folder.read(1) is first
        assert counted == {("read", "t"): 2}
        data = folder.manifest(1).read_bytes()
        folder.manifest(1).write_bytes(data.replace(b"create", b"Create"))
        with pytest.raises(CorruptionError, match="checksum"):
            folder.read(1)
        folder.manifest(1).write_bytes(data)
        assert folder.read(1) == first


@pytest.mark.parametrize("kept", ["nothing", "times", "names"])
def test_a_file_that_was_changed_is_read_again(tmp_path, counted, monkeypatch, kept):
    with Database.open(tmp_path / "db") as database:
        create(database, "t", [1])
        settle(monkeypatch)
        folder = database.table("t").folder
        path = folder.manifest(1)
        folder.read(1)
        before = path.stat()
        data = path.read_bytes().replace(b"create", b"Create")
        time.sleep(0.02)  # more than a tick
        if kept == "names":
            (path.parent / "other").write_bytes(data)
            os.replace(path.parent / "other", path)
        else:
            path.write_bytes(data)
        if kept != "nothing":
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        with pytest.raises(CorruptionError, match="checksum"):
            folder.read(1)


def test_check_reads_all_of_them_again(tmp_path, counted, monkeypatch):
    with Database.open(tmp_path / "db") as database:
        create(database, "t", [1])
        append(database, "t", [2])
        settle(monkeypatch)
        database.table("t")
        counted.clear()
        database.check()
        assert counted["read", "t"] == counted["parsed", "t"] == 2


def test_no_more_is_kept_than_fits(tmp_path, counted, monkeypatch):
    with Database.open(tmp_path / "db") as database:
        for name in "abc":
            create(database, name, [1])
        settle(monkeypatch)
        monkeypatch.setattr(known_manifests, "_MOST_BYTES", 2 * known_manifests._LEAST_BYTES)
        counted.clear()
        for name in "abcabb":
            database.table(name)
        assert [counted["read", name] for name in "abc"] == [2, 2, 1]


def test_one_that_is_too_large_is_not_kept(tmp_path, counted, monkeypatch):
    monkeypatch.setattr(known_manifests, "_MOST_BYTES", known_manifests._LEAST_BYTES - 1)
    settle(monkeypatch)
    with Database.open(tmp_path / "db") as database:
        create(database, "t", [1])
        counted.clear()
        database.table("t")
        database.table("t")
    assert counted["read", "t"] == 2
