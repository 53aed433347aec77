"""Columns of types that BamQuery has not: in the way of those queries only that read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bamquery
from bamquery.errors import BamQueryError, IngestError, SqlError

TABLE = pa.table(
    {
        "i": [1, 2, 3],
        "l": pa.array([[1], [2, 3], None], pa.list_(pa.int64())),
        "d": pa.array([1, 2, None], pa.duration("us")),
        "s": ["a", "b", "c"],
    }
)


@pytest.fixture
def con(tmp_path: Path) -> Iterator[Any]:
    with bamquery.connect(tmp_path / "db") as made:
        made.register("t", TABLE)
        yield made


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT i FROM t ORDER BY i", [(1,), (2,), (3,)]),
        ("SELECT * EXCLUDE (l, D) FROM t WHERE i = 2", [(2, "b")]),
        ("SELECT count(*) FROM t", [(3,)]),
        ("SELECT max(x.s) FROM t x JOIN t y USING (i)", [("c",)]),
        ("SELECT 1 FROM t LIMIT 1", [(1,)]),
        ("SELECT s FROM (SELECT i, s FROM t) WHERE i = 3", [("c",)]),
        ("SELECT a, e FROM t AS t(a, b, c, e) WHERE a = 1", [(1, "a")]),
    ],
)
def test_other_columns_can_be_read(con: Any, query: str, rows: list[Any]) -> None:
    assert con.sql(query).fetchall() == rows


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT l FROM t", r'column "l" has type list.*, which tables cannot hold'),
        ("SELECT i FROM t WHERE t.d IS NULL", r'column "d" has type duration.*, which tables cannot hold'),
        ("SELECT * FROM t", r'"l" has type .*"d" has type .*\* EXCLUDE \("l", "d"\)'),
        ("SELECT t.* EXCLUDE (l) FROM t", r'\* EXCLUDE \("d"\)'),
        ("FROM t", r"\* EXCLUDE"),
        ("SELECT x.i FROM t x JOIN t y USING (l)", '"l" has type'),
        ("SELECT x.i FROM t x NATURAL JOIN t y", '"l" has type'),
    ],
)
def test_they_are_refused_where_they_are_read(con: Any, query: str, message: str) -> None:
    with pytest.raises(BamQueryError, match=message):
        con.sql(query).fetchall()


def test_files(con: Any, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "1.parquet")
    pq.write_table(TABLE.select(["s", "i"]).append_column("l", pa.array([7, 8, 9])), tmp_path / "2.parquet")
    one, both = tmp_path / "1.parquet", tmp_path / "*.parquet"
    assert con.sql(f"SELECT sum(i) FROM '{one}'").fetchall() == [(6,)]
    assert con.sql(f"SELECT * EXCLUDE (l, d) FROM '{both}' ORDER BY ALL").fetchall()[0] == (1, "a")
    with pytest.raises(SqlError, match='"l" has type list'):
        con.sql(f"SELECT l FROM '{both}'").fetchall()
    with pytest.raises(IngestError, match=r'exclude=\["l", "d"\]'):
        con.load("loaded", one)


def test_a_relation_of_all_columns(con: Any) -> None:
    with pytest.raises(BamQueryError, match='"l" has type'):
        con.table("t").fetchall()
