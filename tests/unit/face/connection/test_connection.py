"""Connections: opening, settings, statements, loading, closing."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import bamquery
from bamquery.errors import BamQueryError, SqlError


def test_a_folder_keeps_what_was_committed(tmp_path: Path) -> None:
    with bamquery.connect(tmp_path / "db") as con:
        con.sql("CREATE TABLE t AS SELECT 1 AS a")
    with bamquery.connect(str(tmp_path / "db")) as con:
        assert con.sql("SELECT * FROM t").fetchall() == [(1,)]
        assert con.tables == ["t"]
    assert repr(con) == f"<bamquery.Connection to {tmp_path / 'db'} (closed)>"


def test_memory_is_a_folder_that_goes() -> None:
    with bamquery.connect() as con:
        con.sql("CREATE TABLE t AS SELECT 1 AS a")
        path = con._session.path
        assert path.is_dir()
    assert not path.exists()


def test_a_file_is_not_a_database(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    with pytest.raises(bamquery.StorageError, match="file"):
        bamquery.connect(file)


@pytest.mark.parametrize("use", ["sql", "table", "tables", "load", "fetch", "vacuum", "run"])
def test_a_closed_connection_says_so(use: str) -> None:
    con = bamquery.connect()
    con.sql("CREATE TABLE t AS SELECT 1 AS a")
    relation = con.table("t")
    con.close()
    con.close()
    uses = {
        "sql": lambda: con.sql("SELECT 1"),
        "table": lambda: con.table("t"),
        "tables": lambda: con.tables,
        "load": lambda: con.load("u", pa.table({"a": [1]})),
        "fetch": relation.fetchall,
        "vacuum": con.vacuum,
        "run": relation.run,
    }
    with pytest.raises(bamquery.BamQueryError, match="the connection is closed"):
        uses[use]()
    assert "closed" in repr(relation)


def test_devices() -> None:
    with pytest.raises(bamquery.SettingError, match="cuda:0"):
        bamquery.connect(device="cuda:0")
    with pytest.raises(bamquery.SettingError, match="auto, cpu"):
        bamquery.connect(device="tpu")
    with bamquery.connect(device="cpu") as con:
        relation = con.sql("SELECT 1")
        relation.fetchall()
        assert relation.profile.device == "cpu"
        assert relation.profile.notes == []
    with bamquery.connect() as con:
        relation = con.sql("SELECT 1")
        relation.fetchall()
        assert relation.profile.device == "cpu"
        assert any("auto" in note for note in relation.profile.notes)


def test_settings(con: bamquery.Connection) -> None:
    con.set("threads", 3)
    con.sql("SET strategy = 'vectors'; SET memory_limit = '1GiB'")
    assert (con.settings.threads, con.settings.strategy) == (3, "vectors")
    assert con.settings.memory_limit == 1 << 30
    con.set("strategy", None)
    assert con.settings.strategy == "auto"
    with pytest.raises(bamquery.SettingError, match="threads"):
        con.set("treads", 3)
    with pytest.raises(bamquery.SettingError, match="zone_maps"):
        con.sql("SET zone_maps = 'perhaps'")
    with pytest.raises(bamquery.SettingError, match="cuda:3"):
        con.set("device", "cuda:3")
    assert con.settings.device == "auto"
    with bamquery.connect(threads=1, reader="direct") as other:
        assert other.settings.reader == "direct"
    with pytest.raises(bamquery.SettingError, match="reader"):
        bamquery.connect(readers="direct")


def test_a_memory_limit_is_kept(con: bamquery.Connection) -> None:
    con.load("t", pa.table({"a": np.arange(200_000)}))
    con.set("memory_limit", "100KiB")
    with pytest.raises(bamquery.MemoryLimitError, match="memory_limit"):
        con.sql("SELECT string_agg(a::VARCHAR, '') FROM t").to_arrow()  # one text, which cannot be parted
    con.set("memory_limit", None)
    (answer,) = con.sql("SELECT length(string_agg(a::VARCHAR, '')) FROM t").fetchall()
    assert answer == (1_088_890,)


def test_several_statements_the_last_one_answers(con: bamquery.Connection) -> None:
    relation = con.sql("CREATE TABLE t AS SELECT 1 AS a; INSERT INTO t SELECT a + 1 FROM t; SELECT * FROM t;")
    assert relation.fetchall() == [(1,), (2,)]
    answers = list(con.statements("SELECT 1; SELECT 2"))
    assert [answer.fetchall() for answer in answers] == [[(1,)], [(2,)]]


def test_nothing_runs_if_one_statement_cannot_be_parsed(con: bamquery.Connection) -> None:
    with pytest.raises(bamquery.SqlError):
        con.sql("CREATE TABLE t AS SELECT 1 AS a; SELEC 2")
    assert con.tables == []


def test_statements_before_one_that_fails_are_done(con: bamquery.Connection) -> None:
    with pytest.raises(bamquery.SqlError, match="nope"):
        con.sql("CREATE TABLE t AS SELECT 1 AS a; SELECT nope FROM t")
    assert con.tables == ["t"]


@pytest.mark.parametrize("text", ["", "  ", ";;", "-- nothing"])
def test_no_statement(con: bamquery.Connection, text: str) -> None:
    with pytest.raises(bamquery.SqlError, match="no statement"):
        con.sql(text)


def test_load_from_anything(con: bamquery.Connection, tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2, None], "b": ["x", None, "z"]})
    parquet.write_table(table, tmp_path / "one.parquet")
    rows = [(1, "x"), (2, None), (None, "z")]
    frame = pd.DataFrame({"a": pd.array([1, 2, None], "Int64"), "b": ["x", None, "z"]})
    sources = {
        "arrow": table,
        "file": tmp_path / "one.parquet",
        "pattern": str(tmp_path / "*.parquet"),
        "pandas": frame,
        "polars": pl.DataFrame({"a": [1, 2, None], "b": ["x", None, "z"]}),
        "relation": con.sql("SELECT * FROM (VALUES (1, 'x'), (2, NULL), (NULL, 'z')) v(a, b)"),
    }
    for name, source in sources.items():
        assert con.load(name, source) == 3
        assert con.table(name).fetchall() == rows, name
    assert con.load("arrow", table, if_exists="append") == 3
    assert con.table("arrow").fetchall() == rows * 2
    assert con.load("arrow", table, if_exists="replace", exclude=["b"]) == 3
    assert con.table("arrow").columns == ["a"]
    with pytest.raises(bamquery.CatalogError, match="exists"):
        con.load("arrow", table)
    with pytest.raises(bamquery.IngestError):
        con.load("new", tmp_path / "missing.parquet")
    assert "new" not in con.tables
    with pytest.raises(ValueError, match="if_exists"):
        con.load("arrow", table, if_exists="overwrite")  # type: ignore[arg-type]


def test_a_load_that_fails_leaves_nothing(con: bamquery.Connection) -> None:
    def batches():
        yield pa.record_batch({"a": [1]})
        raise OSError("the source went away")

    schema = pa.schema([("a", pa.int64())])
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    with pytest.raises(Exception, match="the source went away"):
        con.load("t", reader)
    assert con.tables == []
    con.sql("VACUUM")
    report = con.check()
    assert report.clean
    assert report.litter == []


def test_table_looks_at_the_latest_version(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE Trips AS SELECT 1 AS a")
    before = con.table("TRIPS")
    con.sql("INSERT INTO trips SELECT 2")
    assert before.fetchall() == [(1,)]
    assert con.table("trips").fetchall() == [(1,), (2,)]
    with pytest.raises(bamquery.CatalogError, match="Trips"):
        con.table("tripz")


def test_optimize_vacuum_and_check(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE t AS SELECT 3 AS a")
    for value in (1, 2):
        con.sql(f"INSERT INTO t SELECT {value}")
    report = con.optimize("t", cluster_by=["a"])
    assert report.fragments_after == 1
    assert con.table("t").fetchall() == [(1,), (2,), (3,)]
    assert con.vacuum().versions == 3
    assert con.check().clean


def test_interrupt_from_another_thread(con: bamquery.Connection) -> None:
    con.load("t", pa.table({"a": np.arange(1_000_000)}))
    relation = con.sql("SELECT a FROM t WHERE a % 2 = 0")
    result = relation.run()
    next(result)
    thread = threading.Thread(target=con.interrupt)
    thread.start()
    thread.join()
    with pytest.raises(bamquery.CancelledError):
        for _ in result:
            pass
    # Only what ran then: the next query is not concerned.
    assert relation.aggregate("count(*)").fetchall() == [(500_000,)]


def test_closing_stops_what_runs() -> None:
    con = bamquery.connect()
    con.load("t", pa.table({"a": np.arange(1_000_000)}))
    result = con.table("t").run()
    next(result)
    con.close()
    with pytest.raises(bamquery.CancelledError):
        for _ in result:
            pass


def test_so_do_its_methods_and_rows_in_part_taken():
    con = bamquery.connect(device="cpu")
    relation = con.sql("SELECT * FROM (VALUES (1), (2)) t(i)")
    assert relation.fetchone() == (1,)
    con.close()
    calls = [
        relation.fetchone,
        relation.fetchall,
        lambda: con.set("threads", 1),
        lambda: con.register("r", relation),
        con.__enter__,
    ]
    for call in calls:
        with pytest.raises(BamQueryError, match="the connection is closed"):
            call()


def test_statements_and_names_are_strings():
    with bamquery.connect(device="cpu") as con:
        for text in (None, b"SELECT 1"):
            with pytest.raises(TypeError, match="text is SQL in a str"):
                con.sql(text)
        with pytest.raises(TypeError, match="name is a str, not int"):
            con.table(5)
        with pytest.raises(SqlError, match="a parameter's text is not Unicode"):
            con.sql("SELECT ?", ["\udcff"])
        assert con.sql("DROP TABLE IF EXISTS nope").message == 'there is no table "nope"'


def test_a_nested_json_file_is_named(tmp_path):
    file = tmp_path / "deep.json"
    file.write_text("[" * 100_000)
    with (
        bamquery.connect(device="cpu") as con,
        pytest.raises(SqlError, match=r"deep.json: object 1: is nested"),
    ):
        con.sql(f"FROM '{file}'")
