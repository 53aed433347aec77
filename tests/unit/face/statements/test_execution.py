"""Statements that change something: all of it or nothing, at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import bamquery
from bamquery.engine.operators.base.operator import Operator
from tests import oracle
from tests.stored import numbers


def test_create_table_as(con: bamquery.Connection) -> None:
    con.load("n", numbers(5000))
    done = con.sql("CREATE TABLE half AS SELECT position, word, noise * 2 AS twice FROM n WHERE noise < 0.5")
    rows = con.sql("SELECT count(*) FROM n WHERE noise < 0.5").fetchall()
    assert done.fetchall() == rows
    assert done.message == f'created table "half": {rows[0][0]:,} rows'
    assert done.profile.scans[0].source == "n"
    assert con.sql("SELECT count(*) FROM half").fetchall() == rows
    assert (
        con.sql("SELECT sum(twice) FROM half").fetchall()
        == con.sql("SELECT sum(noise * 2) FROM n WHERE noise < 0.5").fetchall()
    )


def test_create_what_exists(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE t AS SELECT 1 AS a")
    with pytest.raises(bamquery.CatalogError, match='"t" exists'):
        con.sql("CREATE TABLE T AS SELECT 2 AS a")
    kept = con.sql("CREATE TABLE IF NOT EXISTS t AS SELECT 2 AS a")
    assert "exists already" in kept.message
    assert con.table("t").fetchall() == [(1,)]
    con.sql("CREATE OR REPLACE TABLE t AS SELECT a + 1 AS b FROM t")
    assert con.table("t").columns == ["b"]
    assert con.table("t").fetchall() == [(2,)]


def test_a_table_of_no_rows(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE t AS SELECT 1 AS a, 'x' AS s WHERE false")
    assert con.table("t").fetchall() == []
    assert con.sql("SELECT count(*), max(s) FROM t").fetchall() == [(0, None)]
    con.sql("INSERT INTO t SELECT 5, 'y'")
    assert con.table("t").fetchall() == [(5, "y")]


def test_columns_that_cannot_be_stored_are_named(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE t AS SELECT 1 AS a, NULL AS nothing")
    assert con.table("t").types == ["INTEGER", "INTEGER"]
    con.sql("CREATE TABLE u AS SELECT 1 AS a, 2 AS A")
    assert len(set(map(str.lower, con.table("u").columns))) == 2


def test_insert_from_the_table_itself(con: bamquery.Connection) -> None:
    con.load("t", pa.table({"a": np.arange(100_000)}))
    for expected in (200_000, 400_000):
        con.sql("INSERT INTO t SELECT * FROM t")
        assert con.sql("SELECT count(*) FROM t").fetchall() == [(expected,)]
    assert con.sql("SELECT sum(a) FROM t").fetchall() == [(4 * sum(range(100_000)),)]


def test_insert_values_and_some_columns(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE t AS SELECT 1 AS a, 'x' AS s")
    assert con.sql("INSERT INTO t VALUES (2, 'y'), (NULL, NULL)").fetchall() == [(2,)]
    con.sql("INSERT INTO t (s) SELECT 'z'")
    assert con.table("t").fetchall() == [(1, "x"), (2, "y"), (None, None), (None, "z")]
    with pytest.raises(bamquery.SqlError):
        con.sql("INSERT INTO t VALUES (1)")


def test_from_files(con: bamquery.Connection, tmp_path: Path) -> None:
    table = numbers(10_000)
    for part in range(2):
        parquet.write_table(table.slice(part * 5000, 5000), tmp_path / f"{part}.parquet")
    con.sql(f"CREATE TABLE t AS SELECT * FROM '{tmp_path}/*.parquet' WHERE rare = 1")
    with oracle.connect() as duck:
        wanted = oracle.ask(duck, "SELECT * FROM n WHERE rare = 1", n=table)
    assert con.table("t").to_arrow().to_pylist() == wanted.to_pylist()
    direct = con.sql(f"SELECT count(*), sum(position) FROM read_parquet('{tmp_path}/*.parquet')")
    assert direct.fetchall() == [(10_000, sum(range(10_000)))]
    assert direct.profile.io.uncounted == (f"{tmp_path}/*.parquet",)
    with pytest.raises(bamquery.SqlError, match=r"missing\.parquet"):
        con.sql(f"SELECT * FROM '{tmp_path}/missing.parquet'")


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE new AS {}", "CREATE OR REPLACE TABLE t AS {}", "INSERT INTO t {}"],
)
def test_an_error_midway_leaves_nothing(con: bamquery.Connection, statement: str) -> None:
    texts = ["1"] * 300_000 + ["no number"]
    con.load("source", pa.table({"s": texts}))
    con.sql("CREATE TABLE t AS SELECT 1 AS a")
    with pytest.raises(bamquery.ExecutionError, match="no number"):
        con.sql(statement.format("SELECT CAST(s AS INTEGER) AS a FROM source"))
    check_untouched(con)


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE new AS {}", "CREATE OR REPLACE TABLE t AS {}", "INSERT INTO t {}"],
)
@pytest.mark.parametrize("stop", [KeyboardInterrupt, bamquery.CancelledError])
def test_stopping_midway_leaves_nothing(
    con: bamquery.Connection, statement: str, stop: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    con.load("source", pa.table({"a": np.arange(2_000_000, dtype=np.int32)}))
    con.sql("CREATE TABLE t AS SELECT 1 AS a")
    frames = Operator.frames

    def stopped(self: Operator, context: object):
        for number, frame in enumerate(frames(self, context)):
            if number == 1 and not self.children:
                raise stop("now")
            yield frame

    with monkeypatch.context() as patch:
        patch.setattr(Operator, "frames", stopped)
        with pytest.raises(stop):
            con.sql(statement.format("SELECT a FROM source"))
    check_untouched(con)


def check_untouched(con: bamquery.Connection) -> None:
    assert con.tables == ["source", "t"]
    assert con.table("t").fetchall() == [(1,)]
    report = con.check()
    assert report.clean
    assert report.litter == []


def test_a_conflict_is_an_error_and_loses_nothing(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE t AS SELECT 1 AS a")
    writer = con._session.database.table("t").append()
    with writer:
        writer.write(pa.record_batch({"a": pa.array([2], pa.int32())}, schema=writer.schema))
        con.sql("INSERT INTO t SELECT 3")
        with pytest.raises(bamquery.ConflictError, match="try again"):
            writer.commit()
    assert con.table("t").fetchall() == [(1,), (3,)]


def test_a_table_that_changed_its_columns_meanwhile(
    con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the reading of INSERT and its execution, another writer replaces the table."""
    con.sql("CREATE TABLE t AS SELECT 1 AS a")
    from bamquery.statements import execution as statements

    insert = statements._insert

    def late(session, statement):
        monkeypatch.setattr(statements, "_insert", insert)
        con.sql("CREATE OR REPLACE TABLE t AS SELECT 'x' AS s")
        return insert(session, statement)

    monkeypatch.setattr(statements, "_insert", late)
    with pytest.raises(bamquery.ConflictError, match="other columns"):
        con.sql("INSERT INTO t SELECT 2")
    assert con.table("t").fetchall() == [("x",)]


def test_drop(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE t AS SELECT 1 AS a")
    assert con.sql("DROP TABLE t").fetchall() == []
    assert con.tables == []
    with pytest.raises(bamquery.CatalogError, match='"t"'):
        con.sql("DROP TABLE t")
    con.sql("DROP TABLE IF EXISTS t")


def test_describe_and_show(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE Trips AS SELECT 1 AS a, 'x' AS s, DATE '2024-01-01' AS day")
    rows = con.sql("DESCRIBE trips").fetchall()
    assert rows == [
        (name, kind, "YES", None, None, None)
        for name, kind in (("a", "INTEGER"), ("s", "VARCHAR"), ("day", "DATE"))
    ]
    assert con.sql("DESCRIBE SELECT a * 1.5 AS x FROM trips").fetchall()[0][:2] == ("x", "DECIMAL(12,1)")
    assert con.sql("SHOW TABLES").fetchall() == [("Trips",)]
    with oracle.connect() as duck:
        duck.sql("CREATE TABLE Trips AS SELECT 1 AS a, 'x' AS s, DATE '2024-01-01' AS day")
        assert duck.sql("DESCRIBE trips").fetchall() == rows
        assert duck.sql("DESCRIBE trips").columns == con.sql("DESCRIBE trips").columns


def test_optimize_and_vacuum(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE t AS SELECT 3 AS a; INSERT INTO t SELECT 1; INSERT INTO t SELECT 2")
    assert "became 1" in con.sql("OPTIMIZE t").message
    con.sql("OPTIMIZE t CLUSTER BY (a)")
    assert con.table("t").fetchall() == [(1,), (2,), (3,)]
    held = con.table("t")
    con.sql("INSERT INTO t SELECT 4")
    assert "in use: t" in con.sql("VACUUM").message
    assert held.fetchall() == [(1,), (2,), (3,)]


def test_explain(con: bamquery.Connection) -> None:
    con.load("t", pa.table({"a": np.arange(5000), "b": np.arange(5000)}))
    plan = con.sql("EXPLAIN SELECT b FROM t WHERE a > 4900")
    assert plan.columns == ["plan"]
    assert "\n".join(line for (line,) in plan.fetchall()) == repr(plan)
    assert "expected" in repr(plan)
    measured = con.sql("EXPLAIN ANALYZE CREATE TABLE u AS SELECT b FROM t WHERE a > 4900")
    assert 'created table "u": 99 rows' in repr(measured)
    assert "scanned 5,000 of 5,000 rows" in repr(measured)
    assert con.sql("SELECT count(*) FROM u").fetchall() == [(99,)]
    con.sql("EXPLAIN INSERT INTO u SELECT b FROM t")
    assert con.sql("SELECT count(*) FROM u").fetchall() == [(99,)]
    again = con.sql("EXPLAIN ANALYZE CREATE TABLE IF NOT EXISTS u AS SELECT 1 AS b")
    assert repr(again) == 'table "u" exists already'


def test_explain_names_functions_that_python_is_called_for(con: bamquery.Connection) -> None:
    con.load("t", pa.table({"a": ["x", "y"], "b": ["x", "z"]}))
    con.sql("SET device = 'cpu'")
    slow = "SELECT max(md5(a)) FROM t WHERE a LIKE b"
    for sql, names in ((slow, "like(), md5()"), ("SELECT upper(a) FROM t WHERE a LIKE 'x%'", "")):
        for explained in (con.sql(f"EXPLAIN {sql}"), con.sql(f"EXPLAIN ANALYZE {sql}")):
            notes = [line for (line,) in explained.fetchall() if line.startswith("note: ")]
            assert notes == ([f"note: Python is called for every row by {names}"] if names else [])


def test_load_gives_missing_columns_their_defaults(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE t (a INTEGER, b INTEGER DEFAULT 7, c VARCHAR DEFAULT 'd', d DATE)")
    con.load("t", pa.table({"A": [1, None]}), if_exists="append")
    con.load("t", pa.table({"a": [3], "b": pa.array([None], pa.int32())}), if_exists="append")
    assert con.table("t").fetchall() == [(1, 7, "d", None), (None, 7, "d", None), (3, None, "d", None)]
