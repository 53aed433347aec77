"""PEP 249 beyond the compliance suite."""

from __future__ import annotations

import datetime
import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import bamquery
from bamquery import dbapi


@pytest.fixture
def con() -> Iterator[dbapi.Connection]:
    with dbapi.connect() as connection:
        yield connection


@pytest.fixture
def cur(con: dbapi.Connection) -> dbapi.Cursor:
    return con.cursor()


# Errors.


@pytest.mark.parametrize(
    ("kind", "cause", "text"),
    [
        (dbapi.ProgrammingError, bamquery.SqlError, "SELECT nothing"),
        (dbapi.ProgrammingError, bamquery.SqlError, "SELECT 1 +"),
        (dbapi.ProgrammingError, bamquery.SqlError, "FROM absent"),
        (dbapi.ProgrammingError, bamquery.CatalogError, "CREATE TABLE t AS SELECT 1 AS a"),
        (dbapi.ProgrammingError, bamquery.SettingError, "SET memory_limt = '1GB'"),
        (dbapi.NotSupportedError, bamquery.UnsupportedError, "UPDATE t SET a = 1"),
        (dbapi.DataError, bamquery.ExecutionError, "INSERT INTO t SELECT 'x' || a FROM t"),
        (dbapi.IntegrityError, bamquery.ConstraintError, "INSERT INTO t VALUES (NULL)"),
        (dbapi.OperationalError, bamquery.StorageError, "COPY t TO '/nowhere/t.csv'"),
    ],
)
def test_each_error_is_the_class_of_pep_249_and_keeps_its_cause(
    cur: dbapi.Cursor, kind: type[Exception], cause: type[Exception], text: str
) -> None:
    cur.execute("CREATE TABLE t (a INTEGER NOT NULL)").execute("INSERT INTO t VALUES (1)")
    with pytest.raises(dbapi.Error) as caught:
        cur.execute(text).fetchall()
    assert type(caught.value) is kind
    assert isinstance(caught.value.__cause__, cause)
    assert str(caught.value) == str(caught.value.__cause__)
    assert isinstance(caught.value, bamquery.BamQueryError)


def test_an_error_of_a_query_comes_with_the_rows(cur: dbapi.Cursor) -> None:
    cur.execute("SELECT CAST(a AS INTEGER) FROM (VALUES ('1'), ('x')) t(a)")
    with pytest.raises(dbapi.DataError, match="x"):
        cur.fetchall()


def test_what_connect_refuses(tmp_path: Path) -> None:
    with pytest.raises(dbapi.ProgrammingError, match="memory_limit"):
        dbapi.connect(memory_limt="1GB")
    with pytest.raises(dbapi.OperationalError, match="absent"):
        dbapi.connect(tmp_path / "absent", create=False)
    (tmp_path / "file").write_text("no database")
    with pytest.raises(dbapi.OperationalError):
        dbapi.connect(tmp_path / "file")


def test_rollback_is_refused_and_commit_does_nothing(con: dbapi.Connection, cur: dbapi.Cursor) -> None:
    cur.execute("CREATE TABLE t (a INTEGER)")
    assert con.changes == 1
    with pytest.raises(dbapi.NotSupportedError, match="every statement commits"):
        con.rollback()
    con.commit()
    assert con.changes == 0
    assert con.autocommit
    assert cur.execute("SHOW TABLES").fetchall() == [("t",)]


# Cursors.


def test_description(cur: dbapi.Cursor) -> None:
    cur.execute(
        "SELECT 1 AS i, 'x' AS s, 1.25 AS d, DATE '2024-01-01' AS day, 'a'::BLOB AS b, INTERVAL 1 DAY AS v"
    )
    assert cur.description == [
        ("i", "INTEGER", None, None, None, None, None),
        ("s", "VARCHAR", None, None, None, None, None),
        ("d", "DECIMAL(3,2)", None, None, 3, 2, None),
        ("day", "DATE", None, None, None, None, None),
        ("b", "BLOB", None, None, None, None, None),
        ("v", "INTERVAL", None, None, None, None, None),
    ]
    families = [dbapi.NUMBER, dbapi.STRING, dbapi.NUMBER, dbapi.DATETIME, dbapi.BINARY, dbapi.DATETIME]
    assert [column[1] for column in cur.description] == families
    assert all(column[1] != dbapi.ROWID for column in cur.description)
    assert repr(dbapi.NUMBER) == "bamquery.dbapi.NUMBER"


def test_rows_as_they_come(cur: dbapi.Cursor) -> None:
    cur.execute("SELECT range FROM range(10)")
    assert cur.rowcount == -1
    assert cur.fetchone() == (0,)
    cur.arraysize = 2
    assert cur.fetchmany() == [(1,), (2,)]
    assert cur.fetchmany(3) == [(3,), (4,), (5,)]
    assert next(cur) == (6,)
    assert list(cur) == [(7,), (8,), (9,)]
    assert cur.fetchone() is None
    assert cur.fetchone() is None
    assert cur.fetchall() == []


def test_several_statements_give_the_last_answer(cur: dbapi.Cursor) -> None:
    cur.execute("CREATE TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2); SELECT sum(a) FROM t")
    assert cur.fetchall() == [(3,)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("CREATE TABLE u AS FROM range(7)", 7),
        ("INSERT INTO t VALUES (1), (2)", 2),
        ("CREATE TABLE u (a INTEGER)", -1),
        ("SET threads = 1", -1),
    ],
)
def test_rowcount(cur: dbapi.Cursor, text: str, count: int) -> None:
    cur.execute("CREATE TABLE t (a INTEGER)").execute(text)
    assert cur.rowcount == count
    assert cur.description is None
    with pytest.raises(dbapi.ProgrammingError, match="no rows to fetch"):
        cur.fetchone()


def test_parameters_with_and_without_names(cur: dbapi.Cursor) -> None:
    assert cur.execute("SELECT ? + ?", (1, 2)).fetchall() == [(3,)]
    assert cur.execute("SELECT $2 - $1", [1, 2]).fetchall() == [(1,)]
    assert cur.execute("SELECT :a + :b", {"a": 1, "b": 2}).fetchall() == [(3,)]
    assert cur.execute("SELECT $a, ':a', :a::VARCHAR", {"a": 1}).fetchall() == [(1, ":a", "1")]
    assert cur.execute("SELECT 'abc'[1:n], :m FROM (SELECT 2 AS n)", {"m": 1}).fetchall() == [("ab", 1)]
    assert cur.execute("SELECT n:1, :n", {"n": 5}).fetchall() == [(1, 5)]
    with pytest.raises(dbapi.ProgrammingError, match="no value for parameter"):
        cur.execute("SELECT ?")
    with pytest.raises(dbapi.ProgrammingError, match="syntax error"):
        cur.execute("SELECT :absent", {"b": 1})
    with pytest.raises(dbapi.ProgrammingError, match="quote or comment"):
        cur.execute("SELECT 'x || :b", {"b": 1})


def test_variables_of_python_are_not_tables(cur: dbapi.Cursor) -> None:
    hidden = pa.table({"a": [1]})
    with pytest.raises(dbapi.ProgrammingError, match='no table "hidden"'):
        cur.execute("FROM hidden")
    cur.connection.native_connection.register("shown", hidden)
    assert cur.execute("FROM shown").fetchall() == [(1,)]


def test_arrow(cur: dbapi.Cursor) -> None:
    table = cur.execute("SELECT range AS a FROM range(3)").fetch_arrow_table()
    assert table.to_pydict() == {"a": [0, 1, 2]}
    assert cur.fetchall() == []
    reader = cur.execute("SELECT range AS a FROM range(3) WHERE range > 5").fetch_record_batch()
    assert reader.schema == pa.schema({"a": pa.int64()})
    assert reader.read_all().num_rows == 0
    cur.execute("FROM range(3)").fetchone()
    with pytest.raises(dbapi.ProgrammingError, match="fetched already"):
        cur.fetch_arrow_table()
    cur.execute("SELECT CAST(a AS INTEGER) FROM (VALUES ('1'), ('x')) t(a)")
    with pytest.raises(dbapi.DataError, match="x"):
        cur.fetch_arrow_table()


def test_a_closed_cursor(con: dbapi.Connection) -> None:
    with con.cursor() as cur:
        cur.execute("FROM range(3)")
    for call in (cur.fetchone, cur.fetchall, lambda: cur.execute("SELECT 1")):
        with pytest.raises(dbapi.InterfaceError, match="the cursor is closed"):
            call()
    cur.close()
    assert con.cursor().execute("SELECT 1").fetchall() == [(1,)]


def test_a_cursor_lets_go_of_versions(con: dbapi.Connection, cur: dbapi.Cursor) -> None:
    cur.execute("CREATE TABLE t AS FROM range(5)")
    cur.execute("FROM t").fetchone()
    con.cursor().execute("INSERT INTO t VALUES (1)")
    cur.close()
    gc.collect()
    assert not con.native_connection.vacuum().in_use


def test_threads_share_a_connection(con: dbapi.Connection) -> None:
    con.cursor().execute("CREATE TABLE t (a INTEGER)")
    failures: list[BaseException] = []

    def work(start: int) -> None:
        try:
            cur = con.cursor()
            for value in range(start, start + 5):
                assert cur.execute("SELECT ?", (value,)).fetchone() == (value,)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 40, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures


def test_repr(tmp_path: Path) -> None:
    dbapi.connect(tmp_path / "db").close()
    con = dbapi.connect(tmp_path / "db")
    assert repr(con).startswith(f"<bamquery.dbapi.Connection to {tmp_path / 'db'}")
    con.close()
    assert repr(con) == f"<bamquery.dbapi.Connection to {tmp_path / 'db'} (closed)>"
    with pytest.raises(dbapi.InterfaceError, match="closed"), con:
        pass


def test_ticks() -> None:
    assert dbapi.DateFromTicks(0) == datetime.date.fromtimestamp(0)
    assert dbapi.TimeFromTicks(1.5).microsecond == 500_000
    assert dbapi.TimestampFromTicks(0) == datetime.datetime.fromtimestamp(0)
    assert dbapi.Binary(b"x") == b"x"
