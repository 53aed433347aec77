"""`executemany`: one commit for all rows, and what single INSERTs would have made."""

from __future__ import annotations

import datetime
import enum
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bamquery import dbapi

DAY = datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 1, 250_000)
ZONED = MOMENT.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2)))


class Color(enum.IntEnum):
    RED = 7


@pytest.fixture
def cur() -> Iterator[dbapi.Cursor]:
    with dbapi.connect() as con:
        yield con.cursor()


def versions(cur: dbapi.Cursor, name: str = "t") -> int:
    return cur.connection.native_connection._session.database.table(name).snapshot().version


CASES: list[tuple[str, list[Any]]] = [
    ("INTEGER", [1, None, -5]),
    ("INTEGER", [1.5, 2.5, -0.5]),
    ("INTEGER", ["7", "-8"]),
    ("INTEGER", [True, 3, "4", Decimal("5.5"), 6.5, None]),
    ("BIGINT", [2**62, -(2**63)]),
    ("UBIGINT", [2**64 - 1, 0]),
    ("HUGEINT", [10**37, 1, None]),
    ("DECIMAL(9,2)", [Decimal("1.235"), Decimal("-1E+3"), None]),
    ("DECIMAL(9,2)", [1, 2.345, "3.14"]),
    ("DOUBLE", [1.5, float("nan"), float("inf"), None, 2]),
    ("FLOAT", [1.1, 2]),
    ("BOOLEAN", [True, False, None]),
    ("BOOLEAN", [1, "false", 0]),
    ("VARCHAR", ["é'\"\\", "", None, "x\0y"]),
    ("VARCHAR", [1, 1.5, True, DAY, Decimal("1.50"), "x"]),
    ("BLOB", [b"\x00\xff", bytearray(b"a"), memoryview(b"b"), None]),
    ("DATE", [DAY, "2023-01-01", None, MOMENT]),
    ("TIME", [datetime.time(1, 2, 3, 4), "24:00:00", None]),
    ("TIMESTAMP", [MOMENT, DAY, "2024-01-01 10:00", None]),
    ("TIMESTAMP", [pd.Timestamp(MOMENT), pd.NaT, pd.NA]),
    ("TIMESTAMP_NS", [pd.Timestamp("2024-01-01 00:00:00.000000001"), MOMENT]),
    ("TIMESTAMPTZ", [ZONED, ZONED.astimezone(datetime.UTC), None]),
    ("TIMESTAMPTZ", [ZONED, MOMENT]),
    ("BIGINT", [np.int64(3), np.uint8(4), np.bool_(True), 5]),
    ("DOUBLE", [np.float32(0.5), np.float64(1.5)]),
    ("TIMESTAMP", [np.datetime64("2024-01-01T00:00:00.5", "us"), None]),
    ("INTEGER", [Color.RED, 1]),
    ("VARCHAR", [datetime.timedelta(hours=1), None]),
    ("INTEGER", [None, None]),
]


@pytest.mark.parametrize(("kind", "values"), CASES, ids=[f"{kind}-{i}" for i, (kind, _) in enumerate(CASES)])
def test_it_makes_what_single_inserts_make(cur: dbapi.Cursor, kind: str, values: list[Any]) -> None:
    cur.execute(f"CREATE TABLE one (n INTEGER, x {kind}); CREATE TABLE t (n INTEGER, x {kind})")
    rows = list(enumerate(values))
    for row in rows:
        cur.execute("INSERT INTO one VALUES (?, ?)", row)
    before = versions(cur)
    cur.executemany("INSERT INTO t VALUES (?, ?)", rows)
    assert cur.rowcount == len(rows)
    assert versions(cur) == before + 1
    assert str(cur.execute("FROM t ORDER BY n").fetchall()) == str(
        cur.execute("FROM one ORDER BY n").fetchall()
    )


def test_named_columns_defaults_and_parameters(cur: dbapi.Cursor) -> None:
    cur.execute('CREATE TABLE "odd ""name" (a INTEGER DEFAULT 9, "B c" VARCHAR, d DATE)')
    cur.executemany('INSERT INTO "odd ""name" ("b C", d) VALUES (?, ?)', [("x", DAY), ("y", None)])
    cur.executemany(
        'INSERT INTO "odd ""name" (d, a) VALUES (:d, :A)', [{"a": 1, "D": DAY}, {"A": 2, "d": None}]
    )
    cur.executemany('INSERT INTO "odd ""name" VALUES ($2, $1, $3)', [("z", 3, DAY)])
    assert cur.execute('FROM "odd ""name"').fetchall() == [
        (9, "x", DAY),
        (9, "y", None),
        (1, None, DAY),
        (2, None, None),
        (3, "z", DAY),
    ]


def test_expressions_and_constants_among_the_values(cur: dbapi.Cursor) -> None:
    cur.execute("CREATE TABLE t (a VARCHAR DEFAULT 'd', b INTEGER, c VARCHAR)")
    cur.executemany("INSERT INTO t VALUES (upper(?), ? + 1, 'k')", [("x", 1), ("y", 2)])
    cur.executemany("INSERT INTO t (b, a, c) VALUES (2 + ?, ?, ?)", [(3, "a", "c")])
    cur.executemany("INSERT INTO t VALUES (DEFAULT, $b, $b)", [{"b": 5}, {"b": 6}])
    assert cur.execute("FROM t").fetchall() == [
        ("X", 2, "k"),
        ("Y", 3, "k"),
        ("a", 5, "c"),
        ("d", 5, "5"),
        ("d", 6, "6"),
    ]


def test_all_rows_or_none(cur: dbapi.Cursor) -> None:
    cur.execute("CREATE TABLE t (a TINYINT NOT NULL)")
    with pytest.raises(dbapi.DataError):
        cur.executemany("INSERT INTO t VALUES (?)", [(1,), (1000,)])
    with pytest.raises(dbapi.IntegrityError):
        cur.executemany("INSERT INTO t VALUES (?)", [(1,), (None,)])
    with pytest.raises(dbapi.ProgrammingError, match="pass str"):
        cur.executemany("INSERT INTO t VALUES (?)", [(1,), (uuid.uuid4(),)])
    with pytest.raises(dbapi.ProgrammingError, match=r"row 2 of the values is a sequence of 2"):
        cur.executemany("INSERT INTO t VALUES (?)", [(1,), (1, 2)])
    with pytest.raises(dbapi.ProgrammingError, match=r"row 2 of the values is a mapping"):
        cur.executemany("INSERT INTO t VALUES (?)", [(1,), {"a": 1}])
    with pytest.raises(dbapi.ProgrammingError, match=r"row 2 of the values has none for parameter \$a"):
        cur.executemany("INSERT INTO t VALUES (:a)", [{"a": 1}, {"b": 1}])
    with pytest.raises(dbapi.ProgrammingError, match=r"row 1 of the values is a str"):
        cur.executemany("INSERT INTO t VALUES (?)", ["x"])
    assert cur.execute("FROM t").fetchall() == []


def test_nothing_to_insert(cur: dbapi.Cursor) -> None:
    cur.execute("CREATE TABLE t (a INTEGER)")
    before = versions(cur)
    cur.executemany("INSERT INTO t VALUES (?)", iter(()))
    assert cur.rowcount == 0
    assert versions(cur) == before


@pytest.mark.parametrize(
    "text", ["SELECT ?", "INSERT INTO t SELECT ?", "INSERT INTO t VALUES (?), (?)", "VACUUM"]
)
def test_other_statements_are_refused(cur: dbapi.Cursor, text: str) -> None:
    cur.execute("CREATE TABLE t (a INTEGER)")
    with pytest.raises(dbapi.NotSupportedError, match="call execute"):
        cur.executemany(text, [(1,)])


def test_the_statements_own_errors_come_first(cur: dbapi.Cursor) -> None:
    with pytest.raises(dbapi.ProgrammingError, match="absent"):
        cur.executemany("INSERT INTO absent VALUES (?)", [(1,)])
    with pytest.raises(dbapi.ProgrammingError, match="syntax error"):
        cur.executemany("INSERT INTO VALUES (?)", [(1,)])


def test_a_table_called_as_the_values_are(cur: dbapi.Cursor) -> None:
    cur.execute("CREATE TABLE rows_of_values (a INTEGER)")
    cur.executemany("INSERT INTO rows_of_values VALUES (?)", [(1,), (2,)])
    assert cur.execute("SELECT sum(a) FROM rows_of_values").fetchone() == (3,)


def test_many_rows(cur: dbapi.Cursor) -> None:
    cur.execute("CREATE TABLE t (a BIGINT, b VARCHAR)")
    cur.executemany("INSERT INTO t VALUES (?, ?)", ((i, str(i)) for i in range(50_000)))
    assert cur.rowcount == 50_000
    assert cur.execute("SELECT sum(a), count(DISTINCT b) FROM t").fetchone() == (1_249_975_000, 50_000)
