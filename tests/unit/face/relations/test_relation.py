"""Relations: lazy, immutable, asked again, and the same as SQL; DuckDB is the oracle."""

from __future__ import annotations

import gc
import weakref
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import bamquery
from bamquery.errors import BamQueryError, SqlError
from tests import oracle
from tests.stored import numbers
from tests.unit.face.conftest import ROWS

QUERIES = [
    "SELECT * FROM numbers",
    "SELECT position, text FROM numbers WHERE rare = 1 AND noise < 0.5 AND holes >= 0.25",
    "SELECT count(*), count(holes), sum(rare), min(noise), max(text) AS latest FROM numbers",
    "SELECT word, flag, count(*), sum(rare), avg(holes) FROM numbers GROUP BY word, flag ORDER BY word, flag",
    "SELECT position FROM numbers WHERE position >= 29990 OR text IS NULL AND noise > 0.99 ORDER BY position",
    "SELECT position, noise FROM numbers WHERE noise > 0.9 ORDER BY noise DESC LIMIT 7 OFFSET 3",
    "SELECT position FROM numbers LIMIT 5 OFFSET 5003",
    "SELECT position * 2 AS twice, upper(text) AS loud FROM numbers WHERE position BETWEEN 4999 AND 5002",
    "SELECT text FROM numbers WHERE word IN ('red', '') AND flag AND position < 100",
    "SELECT count(*) FROM numbers WHERE position < 0",
    "SELECT holes FROM numbers WHERE NOT (holes < 0.9) AND position % 7 = 0",
    "SELECT position FROM numbers WHERE noise < holes AND holes < 0.01",
]


@pytest.mark.parametrize(
    "settings", [{}, {"strategy": "blocks"}, {"zone_maps": False, "threads": 1}], ids=str
)
@pytest.mark.parametrize("sql", QUERIES)
def test_against_duckdb(filled: Path, sql: str, settings: dict) -> None:
    with bamquery.connect(filled, **settings) as con, oracle.connect() as duck:
        ours = con.sql(sql).to_arrow()
        theirs = oracle.ask(duck, sql, numbers=numbers(ROWS))
    assert ours.num_rows == theirs.num_rows
    assert ours.schema.names == theirs.schema.names
    for mine, other in zip(ours.columns, theirs.columns, strict=True):
        for a, b in zip(oracle.plain(mine), oracle.plain(other), strict=True):
            assert oracle.same(a, b, 1e-12)


@pytest.fixture
def numbered(filled: Path):
    with bamquery.connect(filled) as con:
        yield con.table("numbers")


def test_the_dataframe_way(numbered: bamquery.Relation, filled: Path) -> None:
    built = (
        numbered.filter("noise < 0.5 -- only half")
        .filter("rare = 1")
        .project("position", "noise * 2 AS doubled", "word")
        .order("doubled DESC", "position")
        .limit(5, offset=1)
    )
    table = numbers(ROWS)
    with duckdb.connect() as duck:
        expected = oracle.ask(
            duck,
            "SELECT position, noise * 2 AS doubled, word FROM t WHERE noise < 0.5 AND rare = 1 "
            "ORDER BY doubled DESC, position LIMIT 5 OFFSET 1",
            t=table,
        )
        grouped = oracle.ask(
            duck, "SELECT word, count(*), max(noise) FROM t GROUP BY word ORDER BY word", t=table
        )
    assert built.to_arrow().to_pylist() == expected.to_pylist()
    assert built.columns == ["position", "doubled", "word"]
    assert built.types == ["BIGINT", "DOUBLE", "VARCHAR"]
    ours = numbered.aggregate("count(*)", "max(noise)", by="word").order("word")
    assert ours.fetchall() == [tuple(row.values()) for row in grouped.to_pylist()]
    assert numbered.aggregate("count(*)", by=["word", "flag"]).to_arrow().num_rows == 8
    assert numbered.aggregate("sum(rare)").fetchall() == [(sum(table["rare"].to_pylist()),)]


def test_methods_leave_the_relation_alone(numbered: bamquery.Relation) -> None:
    few = numbered.limit(3)
    few.filter("position > 0")
    assert few.fetchall() == few.fetchall()
    assert len(few.fetchall()) == 3


def test_a_filter_over_a_limit_sees_its_rows_only(numbered: bamquery.Relation) -> None:
    assert numbered.limit(10).filter("position >= 8").project("position").fetchall() == [(8,), (9,)]


def test_errors_name_the_place(numbered: bamquery.Relation) -> None:
    with pytest.raises(bamquery.SqlError, match=r"noises.*noise") as caught:
        numbered.filter("noises > 1")
    assert "^" in str(caught.value)
    with pytest.raises(bamquery.SqlError):
        numbered.filter("1 = 1); DROP TABLE numbers; SELECT (1")
    with pytest.raises(ValueError, match="negative"):
        numbered.limit(-1)


def test_columns_called_alike(con: bamquery.Connection) -> None:
    relation = con.sql("SELECT 1 AS a, 2 AS a")
    assert relation.columns == ["a", "a"]
    assert relation.fetchall() == [(1, 2)]
    assert relation.project("a_1").fetchall() == [(2,)]


def test_snapshots(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE t AS SELECT 1 AS a")
    old = con.sql("SELECT * FROM t")
    con.sql("INSERT INTO t SELECT 2")
    assert old.fetchall() == [(1,)]
    assert old.filter("a < 5").fetchall() == [(1,)]
    con.sql("DROP TABLE t")
    con.sql("VACUUM")
    assert old.fetchall() == [(1,)]
    with pytest.raises(bamquery.SqlError, match='no table "t"'):
        con.sql("SELECT * FROM t")


def test_a_version_is_let_go_with_its_relation(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE t AS SELECT 1 AS a")
    relation = con.sql("SELECT * FROM t").filter("a = 1")
    assert relation.fetchone() == (1,)
    assert repr(relation)
    con.sql("INSERT INTO t SELECT 2")
    assert con.vacuum().versions == 0
    gc.disable()  # by reference counting alone, not whenever the collector comes by
    try:
        alive = weakref.ref(relation)
        del relation
        assert alive() is None
        assert con.vacuum().versions == 1
    finally:
        gc.enable()


def test_fetching(con: bamquery.Connection) -> None:
    con.load("t", pa.table({"a": range(10)}))
    relation = con.table("t")
    assert relation.fetchone() == (0,)
    assert relation.fetchmany(3) == [(1,), (2,), (3,)]
    assert relation.fetchall() == [(i,) for i in range(4, 10)]
    assert relation.fetchall() == [(i,) for i in range(10)]
    assert relation.fetchmany(20) == [(i,) for i in range(10)]
    for _ in range(2):
        assert relation.fetchone() is None
        assert relation.fetchmany(3) == []
    assert relation.fetchall() == []
    assert relation.fetchmany(0) == []
    assert relation.fetchone() == (0,)


def test_fetching_what_fails_is_no_end(con: bamquery.Connection) -> None:
    relation = con.sql("SELECT CAST(x::VARCHAR || 'a' AS INTEGER) FROM range(3) r(x)")
    for _ in range(2):
        with pytest.raises(bamquery.ExecutionError):
            relation.fetchone()


def test_python_values(con: bamquery.Connection) -> None:
    values = {
        "b": pa.array([True, None]),
        "i": pa.array([2**63 - 1, None]),
        "f": pa.array([0.5, None]),
        "d": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
        "s": pa.array(["ä", None]),
        "x": pa.array([b"\xff", None]),
        "day": pa.array([date(2024, 2, 29), None]),
        "t": pa.array([time(1, 2, 3, 4), None]),
        "ns": pa.array([1_700_000_000_000_000_999, None], pa.timestamp("ns")),
        "z": pa.array([datetime(2024, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        "dict": pa.array(["p", None]).dictionary_encode(),
    }
    con.load("t", pa.table(values))
    assert con.table("t").fetchall() == [
        (
            True,
            2**63 - 1,
            0.5,
            Decimal("1.50"),
            "ä",
            b"\xff",
            date(2024, 2, 29),
            time(1, 2, 3, 4),
            datetime(2023, 11, 14, 22, 13, 20),
            datetime(2024, 1, 1, tzinfo=UTC),
            "p",
        ),
        (None,) * 11,
    ]


def test_frames(con: bamquery.Connection) -> None:
    con.load("t", pa.table({"a": [1, 2], "b": ["x", None]}))
    relation = con.table("t")
    assert relation.to_pandas()["a"].tolist() == [1, 2]
    assert relation.to_polars().rows() == [(1, "x"), (2, None)]
    assert pl.DataFrame(relation).rows() == [(1, "x"), (2, None)]
    assert pa.table(relation).to_pylist() == relation.to_arrow().to_pylist()
    assert relation.to_arrow().schema == relation.schema
    empty = relation.filter("a > 5")
    assert empty.to_arrow().schema == relation.schema
    assert empty.to_polars().columns == ["a", "b"]


def test_batches_come_as_they_are_asked_for(con: bamquery.Connection) -> None:
    con.load("t", pa.table({"a": np.arange(3_000_000)}))
    relation = con.table("t")
    batches = relation.to_batches()
    first = next(batches)
    scanned = relation.profile.scans[0].rows_scanned
    batches.close()
    assert first.num_rows <= scanned < 3_000_000
    assert sum(batch.num_rows for batch in relation.to_batches()) == 3_000_000


def test_the_profile_is_that_of_the_latest_run(con: bamquery.Connection) -> None:
    con.set("default_encoding", "plain")
    con.load("t", pa.table({"a": range(5000), "b": range(5000)}))
    relation = con.sql("SELECT sum(b) FROM t WHERE a >= 4096")
    with pytest.raises(bamquery.BamQueryError, match="not been run"):
        _ = relation.profile
    relation.fetchall()
    io = relation.profile.io
    assert io.bytes_needed == 5000 * 8 + 904 * 8
    assert io.bytes_read == 2 * 15 * 512
    assert io.amplification == pytest.approx(io.bytes_read / io.bytes_needed)
    assert relation.profile.rows == 1
    assert relation.profile.seconds > 0
    con.set("zone_maps", False)
    relation.fetchall()
    assert relation.profile.io.bytes_read > io.bytes_read
    assert relation.profile.io.bytes_needed == io.bytes_needed


def test_limit_stops_early(con: bamquery.Connection) -> None:
    con.load("t", pa.table({"a": np.arange(2_000_000)}))
    relation = con.sql("SELECT a FROM t LIMIT 10")
    assert len(relation.fetchall()) == 10
    assert relation.profile.io.bytes_read <= 16 * 8192


def test_a_preview_does_not_run_it_all(con: bamquery.Connection) -> None:
    con.load("t", pa.table({"a": np.arange(2_000_000)}))
    text = repr(con.table("t"))
    assert "the first 20 rows" in text
    assert "19" in text
    assert repr(con.table("t").limit(2)).endswith("2 rows")
    assert repr(con.sql("SELECT 1 AS one WHERE false")).endswith("0 rows")


def test_a_preview_of_what_fails_is_the_error(con: bamquery.Connection) -> None:
    con.load("t", pa.table({"s": ["x"]}))
    assert "Relation (n)" in repr(con.sql("SELECT CAST(s AS INTEGER) AS n FROM t"))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda r: r.limit(1.5), TypeError, "count is a whole number"),
        (lambda r: r.fetchmany(-1), ValueError, "size cannot be negative"),
        (lambda r: r.filter(5), TypeError, "condition is SQL in a str"),
        (lambda r: r.filter(""), SqlError, "condition is empty"),
        (lambda r: r.filter("i > 1) OR (1 = 1"), SqlError, "condition is one expression"),
        (lambda r: r.filter("i > 1, 2"), SqlError, "condition is one expression"),
        (lambda r: r.filter("SELECT true"), SqlError, "condition is one expression"),
        (lambda r: r.project(), TypeError, "name at least one"),
        (lambda r: r.order("i LIMIT 1"), SqlError, "this takes expressions"),
        (lambda r: r.aggregate("sum(i)", by="i HAVING true"), SqlError, "syntax error"),
        (lambda r: r.aggregate("sum(i)", by=5), TypeError, "by is SQL in a str or a list"),
        (lambda r: r.project("INTERVAL 1 DAY AS d").to_polars(), BamQueryError, 'column "d" is an INTERVAL'),
        (lambda r: r.to_batches(rows=0), ValueError, "rows is 1 or more"),
        (lambda r: r.to_batches(rows="2"), TypeError, "rows is a whole number"),
    ],
)
def test_arguments_that_make_no_sense(call, kind, message):
    with bamquery.connect(device="cpu") as con, pytest.raises(kind, match=message):
        call(con.sql("SELECT * FROM (VALUES (1), (2)) t(i)"))


def test_conditions_in_parentheses_are_conditions():
    with bamquery.connect(device="cpu") as con:
        rows = con.sql("SELECT * FROM (VALUES (1), (2), (3)) t(i)")
        assert rows.filter("(i > 2) OR (i = 1)").fetchall() == [(1,), (3,)]
        assert rows.filter("(SELECT true) -- why").fetchall() == [(1,), (2,), (3,)]
