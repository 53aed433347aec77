"""Columns that stay in the GPU's memory: the same answers, and no reads."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import bamquery

MONEY = pa.decimal128(18, 2)
QUESTIONS = [
    "SELECT count(*), sum(i), min(s), max(d) FROM t",
    "SELECT i, s, d FROM t WHERE i BETWEEN 500 AND 40000 AND s LIKE '%7' ORDER BY i",
    "SELECT s, count(*) FROM t WHERE d > 100.5 OR i IS NULL GROUP BY s ORDER BY s",
    "SELECT count(*) FROM t WHERE n = 3 AND i > 10",
    "SELECT i FROM t WHERE i / n > 5000 ORDER BY i LIMIT 7",
    "SELECT sum(p * r), max(p), count(*) FROM t WHERE p BETWEEN -900 AND 120000.5 AND r < 0.07 AND i > 10",
    "SELECT r, sum(p), min(w) FROM t WHERE i % 3 = 0 GROUP BY r ORDER BY r",
    "SELECT p, r, w, i FROM t WHERE p < -1234 ORDER BY p, i LIMIT 50",
    "SELECT count(DISTINCT p), median(r), string_agg(CAST(p AS VARCHAR), ',' ORDER BY i) FROM t WHERE i < 40",
    "SELECT count(*), sum(a.p) FROM t a LEFT JOIN t b ON a.i = b.i + 40000 AND b.p > 0 WHERE b.r IS NULL",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = 50_000
    table = pa.table(
        {
            "i": pa.array([None if n % 97 == 0 else n for n in range(rows)], pa.int64()),
            "n": pa.array([n % 11 for n in range(rows)], pa.int32()),
            "s": [f"text {n % 100}" for n in range(rows)],
            "d": pa.array([n / 4 for n in range(rows)]),
            "p": pa.array(
                [None if n % 89 == 5 else Decimal(n * (-1) ** n * 1001).scaleb(-2) for n in range(rows)],
                MONEY,
            ),
            "r": pa.array([Decimal(n % 11).scaleb(-2) for n in range(rows)], pa.decimal128(4, 2)),
            "w": pa.array([Decimal(n) * 10**20 for n in range(rows)], pa.decimal128(38, 0)),
        }
    )
    folder = tmp_path / "db.bq"
    with bamquery.connect(folder, device="cpu") as con:
        con.load("t", table)
    return folder


def _strategies(con: bamquery.Connection, sql: str) -> set[str]:
    relation = con.sql(sql)
    relation.to_arrow()
    return {column.strategy for scan in relation.profile.scans for column in scan.columns.values()}


@pytest.mark.parametrize("sql", QUESTIONS)
def test_answers_from_the_cache_are_those_from_files(folder: Path, sql: str) -> None:
    with bamquery.connect(folder, device="cpu") as con:
        wanted = con.sql(sql).to_arrow()
    with bamquery.connect(folder, device="cuda:0", gpu_cache_limit="1GiB") as con:
        for _ in range(4):
            assert con.sql(sql).to_arrow() == wanted
        assert _strategies(con, sql) == {"cached"}
        use = con.gpu_cache
        assert use is not None
        assert 0 < use.nbytes <= 1 << 30
        con.set("gpu_cache_limit", 0)
        assert con.sql(sql).to_arrow() == wanted
        if "JOIN" not in sql:  # which keeps what it reads twice as long as it runs
            assert "cached" not in _strategies(con, sql)


def test_decimals_of_few_digits_take_eight_bytes(folder: Path) -> None:
    """Of each row, and a bit where some are null."""
    with bamquery.connect(folder, device="cuda:0", gpu_cache_limit="1GiB") as con:
        before = con.gpu_cache
        for _ in range(4):
            con.sql("SELECT sum(p), sum(r), sum(w) FROM t").to_arrow()
        use = con.gpu_cache
    assert before is not None
    assert use is not None
    assert use.columns - before.columns == 3
    assert use.nbytes - before.nbytes in range(
        50_000 * (8 + 8 + 16), 50_000 * (8 + 8 + 16) + 50_000 // 8 + 100
    )


def test_a_table_that_changes_is_read_anew(folder: Path) -> None:
    with bamquery.connect(folder, device="cuda:0") as con:
        for _ in range(4):
            assert con.sql("SELECT sum(n) FROM t").fetchall() == [(249_985,)]
        con.execute("INSERT INTO t (i, n, s, d) VALUES (1, 1000, 'x', 0)")
        for _ in range(4):
            assert con.sql("SELECT sum(n) FROM t").fetchall() == [(250_985,)]


def test_columns_that_are_left_are_not_taken_for_those_that_went(folder: Path) -> None:
    with bamquery.connect(folder, device="cuda:0") as con:
        con.execute("CREATE TABLE s AS SELECT i, n AS gone, n + 1 AS stays, s AS text FROM t")
        for _ in range(4):
            con.sql("SELECT sum(gone), sum(stays), max(text) FROM s").to_arrow()
        con.execute("ALTER TABLE s DROP COLUMN gone")
        found = [con.sql("SELECT sum(stays), max(text) FROM s").fetchall() for _ in range(4)]
        assert found == [[(249_985 + 50_000, "text 99")]] * 4


def test_memory_that_a_query_needs_is_taken_from_the_cache(folder: Path) -> None:
    with bamquery.connect(folder, device="cuda:0", gpu_memory_limit="24MiB", gpu_cache_limit="20MiB") as con:
        for _ in range(4):
            con.sql("SELECT i, n, s, d FROM t").to_arrow()
        found = con.sql("SELECT count(*) FROM t a JOIN t b ON a.n = b.n AND a.i = b.i").fetchall()
        assert found == [(49_484,)]
