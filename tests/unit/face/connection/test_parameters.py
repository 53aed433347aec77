"""Values for `?`, `$1` and `$name`: what they become, and that DuckDB makes the same of them."""

import datetime
import math
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import bamquery
from bamquery.errors import SqlError
from tests.oracle import connect
from tests.sql.script import render_table

VALUES = [
    *(0, 1, -5, 2**31 - 1, 2**31, -(2**31), 2**40, 2**70, -(2**70)),
    *(1.5, -0.0, 1e300, math.inf, -math.inf, math.nan),
    *("", "it's", "ß", "1", None, True, False, b"", b"a\x00\xff'"),
    *(Decimal("1.50"), Decimal("-0.001"), Decimal("100"), Decimal("0.5")),
    *(datetime.date(2020, 2, 29), datetime.date(1, 1, 1), datetime.time(1, 2, 3, 4)),
    *(datetime.datetime(2020, 1, 1, 1, 2, 3, 4), datetime.datetime(1969, 12, 31)),
    datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    *(datetime.timedelta(days=40, hours=30), datetime.timedelta(microseconds=-1), datetime.timedelta(0)),
    *(bytearray(b"ab"), memoryview(b"ab"), np.float64(2.5), np.str_("a"), np.bytes_(b"a"), pd.NaT, pd.NA),
    *(np.datetime64("2024-01-01"), np.datetime64("2024-01-01T01:02:03.5"), np.datetime64("NaT")),
    *(pd.Timestamp("2024-01-01 01:02:03.123456"), pd.Timedelta("1 day 02:00:00.5")),
]


@pytest.fixture(scope="module")
def ours():
    with bamquery.connect(device="cpu") as connection:
        connection.sql("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, NULL)) v(i, s)")
        yield connection


def _named(value):
    return "memoryview" if isinstance(value, memoryview) else repr(value)  # which has an address in it


@pytest.mark.parametrize("value", VALUES, ids=_named)
def test_a_value_is_what_duckdb_makes_of_it(ours, value):
    with connect() as oracle:
        theirs = oracle.sql("SELECT ? AS x", params=[value]).to_arrow_table()
    assert render_table(ours.sql("SELECT ? AS x", [value]).to_arrow()) == render_table(theirs)


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        ("SELECT ?, ?", [1, "a"]),
        ("SELECT $2, $1, $2", ["x", 2]),
        ("SELECT $low + $high", {"low": 1, "high": 2}),
        ("SELECT $Low+$HIGH,$lOW", {"low": 1, "High": 2}),
        ("SELECT $1,$2", [1, 2]),
        ("SELECT i FROM t WHERE i >= ? AND s = ?", ["2", "b"]),
        ("SELECT i FROM t WHERE i IN (?, ?) ORDER BY i", (1, 3)),
        ("SELECT i FROM t ORDER BY i LIMIT ? OFFSET ?", [1, 1]),
        ("SELECT i FROM t WHERE s LIKE $1", ["a%"]),
        ("SELECT ?::INTEGER, CAST($2 AS DATE)", ["7", "2024-01-01"]),
        ("SELECT ? IS NULL, coalesce(?, 1)", [None, None]),
        ("VALUES (?, ?), (?, ?)", [1, "a", 2, "b"]),
        ("SELECT count(*) FROM t WHERE i > -?", [1]),
        # Where sqlglot gives none of them a place in the text.
        ("SELECT ?, ?::INTEGER, ?, ?::INTEGER", [1, 2, 3, 4]),
        ("SELECT i FROM t WHERE i > ? AND i < ?::BIGINT", [1, 3]),
        ("SELECT i FROM t WHERE i < ? ORDER BY i DESC FETCH FIRST ? ROWS ONLY", [3, 1]),
        ("SELECT ? LIKE ? ESCAPE ?", ["10%", "10!%", "!"]),
        ("SELECT ?[?:?], ?", ["abcdef", 2, 3, 9]),
        ("SELECT ? IN (?, ?), ? BETWEEN ? AND ?", [1, 2, 1, 5, 4, 6]),
        ("SELECT CASE ? WHEN ? THEN ? ELSE ? END", [1, 1, "a", "b"]),
        ("SELECT substring(? FROM ? FOR ?), position(? IN ?)", ["abcdef", 2, 3, "b", "abc"]),
        ("SELECT overlay(? PLACING ? FROM ? FOR ?)", ["abc", "x", 2, 1]),
        ("SELECT i FROM t WHERE (i, ?) IN ((1, ?), (?, 7)) ORDER BY i", [7, 7, 3]),
        ("WITH x AS (SELECT ? AS v) SELECT v, ? FROM x UNION ALL SELECT ?, ?::INT ORDER BY 1", [1, 2, 3, 4]),
        (
            "SELECT sum(i) FILTER (WHERE i > ?) OVER (ORDER BY i ROWS BETWEEN ? PRECEDING AND ? FOLLOWING), "
            "? FROM t ORDER BY i",
            [1, 2, 1, 7],
        ),
    ],
)
def test_values_take_the_places_of_parameters(ours, sql, params):
    with connect() as oracle:
        oracle.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, NULL)) v(i, s)")
        theirs = oracle.sql(sql, params=params).to_arrow_table()
    assert render_table(ours.sql(sql, params).to_arrow()) == render_table(theirs)


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        ("DROP TABLE ?", ["t"]),
        ("CREATE TABLE ? AS SELECT 1 AS x", ["u"]),
        ("INSERT INTO t (?) VALUES (1)", ["i"]),
        ("CREATE TABLE u (? INTEGER)", ["i"]),
        ("SELECT ? AS ?", [1, "x"]),
        ("SELECT $1$1", [1]),
        ("SELECT ?: 1", ["x"]),
        ("FROM t AS ?", ["x"]),
        ("FROM t AS x(?)", ["a"]),
        ("SELECT t.? FROM t", ["i"]),
        ("SELECT * EXCLUDE (?) FROM t", ["i"]),
        ("SELECT * FROM t JOIN t AS u USING (?)", ["i"]),
        ("WITH ? AS (SELECT 1) SELECT 1", ["x"]),
        ("DESCRIBE ?", ["t"]),
    ],
)
def test_a_parameter_is_no_name(ours, sql, params):
    with pytest.raises(SqlError, match="a parameter stands for a value, not for a name"):
        ours.sql(sql, params)
    assert ours.sql("SHOW TABLES").fetchall() == [("t",)]


def test_columns_are_called_as_duckdb_calls_them(ours):
    assert ours.sql("SELECT $1, $2 + 1, abs($1)", [1, 2]).columns == ["$1", "($2 + 1)", "abs($1)"]


def test_values_of_numpy_and_pyarrow(ours):
    values = [np.int64(5), np.float32(1.5), np.bool_(True), pa.scalar("x"), np.str_("y")]
    assert ours.sql("SELECT ?, ?, ?, ?, ?", values).fetchall() == [(5, 1.5, True, "x", "y")]
    assert ours.sql("SELECT ?, ?", [np.uint64(2**63), np.timedelta64("NaT")]).fetchall() == [(2**63, None)]
    exact = np.datetime64("2024-01-01T01:02:03.123456789")
    assert ours.sql("SELECT epoch_ns(?)", [exact]).fetchall() == [(exact.astype(int),)]
    seconds = ours.sql("SELECT epoch(?), epoch(?)", [np.timedelta64(5, "s"), np.timedelta64(2, "h")])
    assert seconds.fetchall() == [(5.0, 7200.0)]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (uuid.UUID(int=5), "UUID, there is no type for it: pass str"),
        (np.longdouble(2.5), "longdouble"),
        (np.complex64(1), "complex"),
        (np.timedelta64(5, "ns"), r"timedelta64\[ns\]: astype"),
        (np.datetime64(10**6, "Y"), r"datetime64\[Y\]"),
        (pd.Timedelta(5, "ns"), "nanoseconds"),
        (Decimal("NaN"), "the Decimal NaN"),
        (Decimal("Infinity"), "the Decimal Infinity"),
        (np.array([3]), "ndarray"),
    ],
)
def test_values_of_no_type_are_named(ours, value, words):
    with pytest.raises(SqlError, match=words):
        ours.sql("SELECT ?", [value])


def test_parameters_in_other_statements(ours, tmp_path):
    path = str(tmp_path / "x.parquet")
    ours.sql("CREATE OR REPLACE TABLE given (a INTEGER DEFAULT ?, b VARCHAR)", [7])
    ours.sql("INSERT INTO given (b) VALUES ($b)", {"b": "x"})
    ours.sql("COPY given TO ?", [path])
    ours.sql("COPY given FROM $path", {"path": path})
    assert ours.sql("SELECT * FROM read_parquet(?)", [path]).fetchall() == [(7, "x")]
    assert ours.sql("SELECT count(*) FROM given").fetchall() == [(2,)]
    assert ours.sql("DESCRIBE given").fetchall()[0][4] == "7"
    ours.sql("SET threads = ?", [2])
    assert ours.settings.threads == 2
    with pytest.raises(SqlError, match="a path is a string"):
        ours.sql("COPY given TO ?", [5])
    ours.sql("CREATE OR REPLACE TABLE made AS SELECT $x AS a", {"x": 1})
    ours.sql("INSERT INTO made VALUES (?), (?)", ["7", 8])
    assert ours.sql("SELECT * FROM made WHERE a > $1 ORDER BY a", [1]).fetchall() == [(7,), (8,)]


@pytest.mark.parametrize(
    ("sql", "params", "message"),
    [
        ("SELECT ?", None, "no value for parameter $1"),
        ("SELECT ?", [], "no value for parameter $1"),
        ("SELECT $1,\n $2", [1], "no value for parameter $2"),
        ("SELECT ?", [1, 2], "there is no parameter $2"),
        ("SELECT 1", {"a": 1, "b": 2}, "there is no parameter $a, $b"),
        ("SELECT $x", [1], "no value for parameter $x"),
        ("SELECT $x, ?", {"x": 1}, "with and without names cannot be mixed"),
        ("SELECT ?", [[1, 2]], "Python's type list"),
        ("SELECT ?", [Decimal("NaN")], "Decimal NaN"),
        ("SELECT ?", [10**39], "more than 38 digits"),
        ("CREATE VIEW v AS SELECT ?", [1], "a view cannot have parameters"),
    ],
)
def test_what_does_not_fit_is_said(ours, sql, params, message):
    with pytest.raises(SqlError) as caught:
        ours.sql(sql, params)
    assert message in str(caught.value)


def test_all_missing_values_are_named_with_their_places(ours):
    with pytest.raises(SqlError) as caught:
        ours.sql("SELECT $a,\n  $b", {})
    assert [(reason.line, reason.column) for reason in caught.value.reasons] == [(1, 8), (2, 3)]


def test_a_text_is_no_list_of_values(ours):
    with pytest.raises(TypeError, match="list of values or a dict"):
        ours.sql("SELECT ?", "x")
