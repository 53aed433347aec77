"""COPY TO with PARTITION_BY: files are DuckDB's, and whole or not there."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyarrow import parquet

import bamquery
from bamquery.connection.connection import Connection
from bamquery.errors import AccessError, BamQueryError, SqlError, StorageError
from bamquery.statements import partitioned_files
from tests.oracle import connect

ROWS = r"""
CREATE TABLE t AS SELECT i, s, d::DOUBLE AS d, ts, dt, b, x FROM (VALUES
  (1, 'a', 10.5, TIMESTAMP '2020-01-01 12:34:56', DATE '2020-01-01', TRUE, 1),
  (2, 'b/ c=%é', 20, TIMESTAMP '2020-01-02 12:34:56.5', NULL, FALSE, 2),
  (NULL, NULL, 'nan'::DOUBLE, NULL, NULL, NULL, 3),
  (3, '', -0.0, NULL, DATE '9999-12-31', TRUE, 4),
  (3, '..', 0.0, NULL, NULL, TRUE, 5),
  (1, 'a', 10.5, TIMESTAMP '2020-01-01 12:34:56', DATE '2020-01-01', TRUE, 6)
) v(i, s, d, ts, dt, b, x)
"""


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.chdir(tmp_path)
    with bamquery.connect(device="cpu") as connection:
        connection.sql(ROWS)
        yield connection


@pytest.fixture
def theirs() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as connection:
        connection.sql(ROWS)
        yield connection


def files(folder: str) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())


def everything() -> list[str]:
    return sorted(str(path) for path in Path().rglob("*"))


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
@pytest.mark.parametrize("keys", ["i", "s, i", "d", "ts", "dt, b", "b, s, i, ts"])
def test_folders_and_rows_are_duckdbs(
    ours: Connection, theirs: duckdb.DuckDBPyConnection, kind: str, keys: str
) -> None:
    # What CSV and JSON make of these in a file is another matter.
    columns = [
        "s" if "s" in keys.split(", ") else "nullif(s, '') AS s",
        "d" if keys == "d" else "if(isnan(d), 30, d) AS d",
    ]
    query = f"SELECT i, {', '.join(columns)}, ts, dt, b, x FROM t"
    for folder, connection in (("mine", ours), ("other", theirs)):
        done = connection.sql(f"COPY ({query}) TO '{folder}' (FORMAT {kind}, PARTITION_BY ({keys}))")
        assert done.fetchall()[0][0] == 6
    assert files("mine") == files("other")
    depth = "*/" * (keys.count(",") + 1)
    read = [
        sorted(map(str, connection.sql(f"FROM '{folder}/{depth}*.{kind}'").fetchall()))  # nan = nan
        for connection in (ours, theirs)
        for folder in ("mine", "other")
    ]
    assert read == [read[0]] * 4


@pytest.mark.parametrize(
    "options",
    [
        "WRITE_PARTITION_COLUMNS",
        "FILENAME_PATTERN 'x'",
        "FILENAME_PATTERN 'x_{i}_y'",
        "FILE_EXTENSION 'text'",
        "COMPRESSION gzip",
        "HEADER false, DELIMITER '|'",
    ],
)
def test_options(ours: Connection, theirs: duckdb.DuckDBPyConnection, options: str) -> None:
    for folder, connection in (("mine", ours), ("other", theirs)):
        connection.sql(f"COPY (FROM t WHERE i < 3) TO '{folder}' (FORMAT csv, PARTITION_BY i, {options})")
    assert files("mine") == files("other")
    if "gzip" not in options:
        for name in files("mine"):
            assert Path("mine", name).read_text() == Path("other", name).read_text()


def test_what_becomes_of_files_that_are_there(ours: Connection) -> None:
    copy = "COPY t TO 'x' (FORMAT csv, PARTITION_BY i{})"
    ours.sql(copy.format(""))
    first = files("x")
    with pytest.raises(StorageError, match="not empty"):
        ours.sql(copy.format(""))
    ours.sql(copy.format(", OVERWRITE_OR_IGNORE"))
    assert files("x") == first
    ours.sql(copy.format(", APPEND"))
    ours.sql(copy.format(", APPEND, FILENAME_PATTERN 'more_{uuid}'"))
    assert len(files("x")) == 3 * len(first)
    assert set(first) < set(files("x"))
    assert ours.sql("SELECT count(*) FROM 'x/*/*.csv'").fetchall() == [(18,)]
    ours.sql("COPY (SELECT 7 AS i, 8 AS y) TO 'x' (FORMAT csv, PARTITION_BY i, OVERWRITE)")
    assert files("x") == ["i=7/data_0.csv"]
    assert os.listdir("x") == ["i=7"]
    ours.sql("COPY (SELECT 7 AS i, 8 AS y WHERE false) TO 'none' (FORMAT csv, PARTITION_BY i)")
    assert files("none") == []


@pytest.mark.parametrize("other", ["x/notes.txt", "x/i=1/readme", "x/sub/a.csv"])
def test_overwriting_removes_nothing_else(ours: Connection, other: str) -> None:
    copy = "COPY t TO 'x' (FORMAT csv, PARTITION_BY i, OVERWRITE)"
    ours.sql(copy)
    Path(other).parent.mkdir(exist_ok=True)
    Path(other).write_text("mine")
    before = everything()
    with pytest.raises(StorageError, match="is not removed"):
        ours.sql(copy)
    assert everything() == before


def test_overwriting_follows_no_links(ours: Connection) -> None:
    Path("x").mkdir()
    Path("precious").mkdir()
    Path("precious/a.csv").write_text("mine")
    Path("x/i=1").symlink_to(Path("precious").absolute())
    with pytest.raises(StorageError, match="is not removed"):
        ours.sql("COPY t TO 'x' (FORMAT csv, PARTITION_BY i, OVERWRITE)")
    assert Path("precious/a.csv").read_text() == "mine"


@pytest.mark.parametrize("restricted", [False, True])
def test_overwriting_follows_no_link_that_appears_meanwhile(
    ours: Connection, monkeypatch: pytest.MonkeyPatch, restricted: bool
) -> None:
    ours.sql("COPY t TO 'x' (FORMAT csv, PARTITION_BY i)")
    if restricted:
        ours.sql(f"SET allowed_directories = ['{Path('x').absolute()}']")
        ours.sql("SET enable_external_access = false")
    real = partitioned_files._Drafts._old_files

    def old_files(self: Any) -> Any:
        found = real(self)
        if self._files:
            Path("x/i=2").rename("precious")
            Path("x/i=2").symlink_to(Path("precious").absolute())
        return found

    monkeypatch.setattr(partitioned_files._Drafts, "_old_files", old_files)
    with pytest.raises(BamQueryError):
        ours.sql("COPY (SELECT 7 AS i, 8 AS y) TO 'x' (FORMAT csv, PARTITION_BY i, OVERWRITE)")
    assert os.listdir("precious") == ["data_0.csv"]


def test_rows_keep_their_order_within_a_file(ours: Connection) -> None:
    query = "SELECT i % 3 AS k, i FROM range(5000) t(i) ORDER BY i * 1237 % 5000"
    ours.sql(f"COPY ({query}) TO 'x' (FORMAT parquet, PARTITION_BY k)")
    expected = [i for k, i in ours.sql(query).fetchall() if k == 1]
    assert parquet.read_table("x/k=1/data_0.parquet", partitioning=None)["i"].to_pylist() == expected


def test_many_partitions_need_few_descriptors_and_little_memory(ours: Connection) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ours.sql("SET memory_limit = '64MB'")
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, hard))
    try:
        query = "SELECT i % 500 AS k, i, repeat('x', 200) AS s FROM range(200000) t(i)"
        copied = ours.sql(f"COPY ({query}) TO 'x' (FORMAT csv, PARTITION_BY k)")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert copied.fetchall() == [(200000,)]
    assert copied.profile.spilled
    assert len(files("x")) == 500
    own = [i for i in range(200000) if i % 500 == 77]
    assert ours.sql("SELECT count(*), sum(i) FROM 'x/k=77/*.csv'").fetchall() == [(len(own), sum(own))]


def test_nothing_is_left_of_what_failed(ours: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    ours.sql("COPY (SELECT 1 AS k, 1 AS i) TO 'old' (FORMAT csv, PARTITION_BY k)")
    before = everything()
    query = "SELECT i % 10 AS k, if(i = 9, 'x', '1')::INTEGER AS i FROM range(10) t(i)"
    for folder in ("x", "old"):
        with pytest.raises(BamQueryError, match="cannot be cast"):
            ours.sql(f"COPY ({query}) TO '{folder}' (FORMAT csv, PARTITION_BY k, OVERWRITE)")
        assert everything() == before

    monkeypatch.setattr(partitioned_files.os, "fsync", _full)
    for folder in ("x", "old"):
        with pytest.raises(StorageError, match="cannot be written: No space left"):
            ours.sql(f"COPY t TO '{folder}' (FORMAT parquet, PARTITION_BY i, OVERWRITE_OR_IGNORE)")
        assert everything() == before


def _full(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_write_that_fails(ours: Connection) -> None:
    before = everything()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    # SIGXFSZ is ignored by Python, so that writing fails as on a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limit[1]))
    try:
        with pytest.raises(StorageError, match="cannot be written: File too large"):
            ours.sql(
                "COPY (SELECT i // 50000 AS k, i FROM range(200000) t(i)) TO 'x' (FORMAT csv, PARTITION_BY k)"
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert everything() == before


def test_null_and_what_stands_for_it(ours: Connection) -> None:
    before = everything()
    query = "SELECT * FROM (VALUES (NULL, 1), ('__HIVE_DEFAULT_PARTITION__', 2)) v(k, x)"
    with pytest.raises(StorageError, match="which stands for NULL"):
        ours.sql(f"COPY ({query}) TO 'x' (FORMAT csv, PARTITION_BY k)")
    assert everything() == before


def test_databases_are_left_alone(tmp_path: Path) -> None:
    with bamquery.connect(tmp_path / "db", device="cpu") as connection:
        connection.sql(ROWS)
        for folder in ("db", "db/x", "db/tables"):
            with pytest.raises(AccessError, match="only BamQuery writes"):
                connection.sql(f"COPY t TO '{tmp_path}/{folder}' (FORMAT csv, PARTITION_BY i, OVERWRITE)")
        with pytest.raises(StorageError, match="is not removed"):
            connection.sql(f"COPY t TO '{tmp_path}' (FORMAT csv, PARTITION_BY i, OVERWRITE)")
        assert connection.check().errors == []


def test_every_file_is_asked_for(ours: Connection, tmp_path: Path) -> None:
    for name in ("allowed", "elsewhere"):
        Path(name).mkdir()
    Path("allowed/way").mkdir()
    Path("allowed/way/i=1").symlink_to(tmp_path / "elsewhere")
    ours.sql(f"SET allowed_directories = ['{tmp_path}/allowed']; SET enable_external_access = false")
    for folder in ("elsewhere/x", "allowed/../x", "allowed/way"):
        with pytest.raises(AccessError):
            ours.sql(f"COPY t TO '{tmp_path}/{folder}' (FORMAT csv, PARTITION_BY i, OVERWRITE_OR_IGNORE)")
    assert files("elsewhere") == []
    ours.sql(f"COPY t TO '{tmp_path}/allowed/x' (FORMAT csv, PARTITION_BY i)")
    assert len(files("allowed/x")) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("PARTITION_BY nope", 'no column "nope"'),
        ("PARTITION_BY (i, I)", 'column "I" is given twice'),
        ("PARTITION_BY ()", "columns in parentheses"),
        ("PARTITION_BY *", "WRITE_PARTITION_COLUMNS"),
        ("PARTITION_BY i, OVERWRITE, APPEND", "give one of them"),
        ("PARTITION_BY i, APPEND, FILENAME_PATTERN 'x'", "{uuid}"),
        ("PARTITION_BY i, FILENAME_PATTERN '../x'", "without /"),
        ("FILENAME_PATTERN 'x'", "files in folders"),
    ],
)
def test_what_is_wrong_is_said(ours: Connection, options: str, message: str) -> None:
    before = everything()
    with pytest.raises(SqlError) as caught:
        ours.sql(f"COPY t TO 'x' (FORMAT csv, {options})")
    assert message in str(caught.value)
    assert everything() == before
