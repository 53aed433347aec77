"""Joins with one build row, which are filters, give what pairs give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import bamquery
from bamquery.engine.operators.join import one_build_row
from bamquery.engine.operators.join.pairs import AllPairs

QUESTIONS = [
    "SELECT a, s, (SELECT avg(a) FROM t) AS m FROM t WHERE a > (SELECT avg(a) FROM t) ORDER BY a",
    "SELECT t.a, one.d, one.b, one.n FROM t, one ORDER BY t.a",
    "SELECT t.a, one.d, one.b FROM t JOIN one ON t.a < one.d ORDER BY t.a",
    "SELECT count(*) FROM t JOIN one ON t.a < one.d AND t.s <> 'x3' AND one.b",
    "SELECT t.a, one.n FROM t JOIN one ON t.a > one.n OR t.a = 5 ORDER BY t.a",
    "SELECT count(*) FROM t JOIN (SELECT max(a) AS m FROM t WHERE a < 0) AS x ON t.a > x.m",
    "SELECT sum(a) FROM t WHERE a > (SELECT 0.0001 * sum(a) FROM t)",
]


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[bamquery.Connection]:
    with bamquery.connect(tmp_path / "db.bq", device="cpu") as con:
        con.execute("CREATE TABLE t AS SELECT i AS a, 'x' || (i % 7) AS s FROM range(5000) AS r(i)")
        con.execute("INSERT INTO t VALUES (NULL, 'null')")
        con.execute("CREATE TABLE one AS SELECT 2500.25::DECIMAL(9, 2) AS d, true AS b, NULL::INTEGER AS n")
        yield con


@pytest.mark.parametrize("sql", QUESTIONS)
def test_answers(tables: bamquery.Connection, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(AllPairs, "matches", None)  # no pairs are made
        found = tables.sql(sql).to_arrow()
    with monkeypatch.context() as patch:
        patch.setattr(one_build_row, "_is_short", lambda kind: False)
        assert found == tables.sql(sql).to_arrow()


def test_a_string_is_not_there_once_for_each_row(
    tables: bamquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_build_row.OneBuildRow, "rows", None)
    sql = "SELECT count(*) FROM t JOIN (SELECT 'x3' AS s) AS x ON t.s < x.s OR t.a IS NULL"
    assert tables.sql(sql).fetchall() == [(2145,)]
