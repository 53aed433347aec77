"""Columns that stay in the GPU's memory: the same answers, and no reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import bamquery

QUESTIONS = [
    "SELECT count(*), sum(i), min(s), max(d) FROM t",
    "SELECT i, s, d FROM t WHERE i BETWEEN 500 AND 40000 AND s LIKE '%7' ORDER BY i",
    "SELECT s, count(*) FROM t WHERE d > 100.5 OR i IS NULL GROUP BY s ORDER BY s",
    "SELECT count(*) FROM t WHERE n = 3 AND i > 10",
    "SELECT i FROM t WHERE i / n > 5000 ORDER BY i LIMIT 7",
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
        assert "cached" not in _strategies(con, sql)


def test_a_table_that_changes_is_read_anew(folder: Path) -> None:
    with bamquery.connect(folder, device="cuda:0") as con:
        for _ in range(4):
            assert con.sql("SELECT sum(n) FROM t").fetchall() == [(249_985,)]
        con.execute("INSERT INTO t VALUES (1, 1000, 'x', 0)")
        for _ in range(4):
            assert con.sql("SELECT sum(n) FROM t").fetchall() == [(250_985,)]


def test_memory_that_a_query_needs_is_taken_from_the_cache(folder: Path) -> None:
    with bamquery.connect(folder, device="cuda:0", gpu_memory_limit="24MiB", gpu_cache_limit="20MiB") as con:
        for _ in range(4):
            con.sql("SELECT i, n, s, d FROM t").to_arrow()
        found = con.sql("SELECT count(*) FROM t a JOIN t b ON a.n = b.n AND a.i = b.i").fetchall()
        assert found == [(49_484,)]
