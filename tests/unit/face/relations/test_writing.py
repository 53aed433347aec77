"""Relations put into tables, views and files; what connections execute; cursors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bamquery
from bamquery import col
from bamquery.errors import BamQueryError, CatalogError, SqlError

TRIPS = pa.table(
    {
        "id": pa.array(range(12), pa.int64()),
        "kind": pa.array([0, 1, 2, None] * 3, pa.int64()),
        "fare": pa.array([1.5 * n if n % 5 else None for n in range(12)], pa.float64()),
        "note": pa.array(["x", "it's", None, "y"] * 3, pa.string()),
    }
)


def rows(found: Any) -> list[str]:
    """In any order, so that nulls can be compared."""
    return sorted(repr(tuple(row)) for row in found)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[bamquery.Connection]:
    with bamquery.connect(tmp_path / "db") as connection:
        connection.load("trips", TRIPS)
        yield connection


def test_tables(own) -> None:
    t = own.table("trips")
    made = t.filter("id < 3").create('odd "name"')
    assert made.fetchall() == t.filter("id < 3").fetchall()
    with pytest.raises(CatalogError, match="exists already"):
        t.create('odd "name"')
    assert len(t.create('odd "name"', replace=True)) == 12
    assert t.limit(2).insert_into('odd "name"') == 2
    assert t.limit(1).select("note", "id", "fare", "kind").insert_into('odd "name"', by_name=True) == 1
    assert len(own.table('odd "name"')) == 15
    with pytest.raises(SqlError, match='no table "nope"'):
        t.insert_into("nope")
    assert own.append("trips", TRIPS.to_pandas()) == 12
    assert len(t) == 12  # as it was when the relation was made
    assert len(own.table("trips")) == 24


def test_views(own) -> None:
    t = own.table("trips")
    kinds = own.sql("SELECT DISTINCT kind AS k FROM trips -- all of them\n;")
    deep = (
        t.filter("id > 1 -- but the first")
        .with_columns(fare=col("fare") * 2)
        .join(kinds, "trips.kind = other.k")
    )
    view = deep.aggregate(s="sum(fare)", n="count(*)", by="k").create_view("v")
    assert rows(view.fetchall()) == rows(deep.aggregate("sum(fare)", "count(*)", by="k").fetchall())
    own.sql("INSERT INTO trips SELECT 100, 0, 1000, 'new'")
    # A view sees the tables as they are; the relation does not.
    assert own.sql("SELECT s > 1000 FROM v WHERE k = 0").fetchall() == [(True,)]
    assert rows(deep.fetchall()) != rows(own.sql(deep.sql_query()).fetchall())
    assert own.views == ["v"]
    with pytest.raises(CatalogError, match="exists already"):
        t.create_view("v")
    t.limit(1).create_view("v", replace=True)
    assert len(own.table("v")) == 1


def test_views_of_what_is_no_sql(own) -> None:
    frame = TRIPS
    own.register("registered", TRIPS)
    own.register("trips_", own.table("trips"))
    for relation in (
        own.sql("FROM frame"),
        own.sql("FROM registered"),
        own.sql("SELECT $1 AS a", [1]),
        own.from_arrow(frame),
        own.table("registered"),
        own.table("trips").filter("id IN (SELECT id FROM frame)"),
        own.table("trips").union(own.from_arrow(frame)),
        own.table("trips").materialize(),
        own.sql("SET threads = 2"),
        own.sql("SELECT 1; SELECT 2"),
        own.sql("FROM trips_"),
    ):
        with pytest.raises(CatalogError, match=r"not of SQL alone.*create"):
            relation.create_view("v")
        with pytest.raises(CatalogError, match="not of SQL alone"):
            relation.filter("true").sql_query()
    assert own.views == []


def test_a_table_that_is_called_self(own) -> None:
    own.sql("CREATE TABLE self AS SELECT 1 AS id; CREATE TABLE other AS SELECT 1 AS id, 5 AS b")
    t = own.sql("SELECT id FROM self")
    assert t.filter("id = 1").create_view("v").fetchall() == [(1,)]
    joined = own.table("trips").join(own.sql("SELECT * FROM other"), "id")
    assert joined.select("id", "b").fetchall() == [(1, 5)]
    with pytest.raises(CatalogError):
        joined.create_view("w")
    assert own.table("self").join(own.table("other"), "id").fetchall() == [(1, 5)]


def test_files(own, tmp_path: Path) -> None:
    t = own.table("trips").order("id")
    assert t.to_parquet(tmp_path / "x.parquet", compression="gzip", row_group_size=5) == 12
    found = pq.ParquetFile(tmp_path / "x.parquet")
    assert found.metadata.row_group(0).column(0).compression == "GZIP"
    assert found.read().to_pylist() == TRIPS.to_pylist()
    assert (
        t.to_csv(str(tmp_path / "x.csv"), delimiter=";", null="NIL", force_quote="note", header=False) == 12
    )
    assert (tmp_path / "x.csv").read_text().splitlines()[:3] == [
        '0;0;NIL;"x"',
        '1;1;1.5;"it\'s"',
        "2;2;3.0;NIL",
    ]
    assert t.to_csv(tmp_path / "x.tsv") == 12
    assert (tmp_path / "x.tsv").read_text().splitlines()[0] == "id\tkind\tfare\tnote"
    assert t.to_json(tmp_path / "it's.json", array=True) == 12
    assert t.to_arrow_file(tmp_path / "x.arrow", compression="zstd") == 12
    assert t.write_parquet(str(tmp_path / "y.parquet")) == t.write_csv(str(tmp_path / "y.csv")) == 12
    for read, name in (
        (own.read_json, "it's.json"),
        (own.read_arrow, "x.arrow"),
        (own.read_parquet, "x.parquet"),
        (own.read_csv, "x.tsv"),
        (own.from_parquet, "y.parquet"),
        (own.from_csv_auto, "y.csv"),
    ):
        assert read(tmp_path / name).order("id").fetchall() == t.fetchall()
    both = own.read_parquet([tmp_path / "x.parquet", tmp_path / "y.parquet"], filename=True)
    assert both.shape == (24, 5)
    columns = {"a": "BIGINT", "b": "VARCHAR", "c": "DOUBLE", "d": "VARCHAR"}
    typed = own.read_csv(tmp_path / "x.csv", delimiter=";", null=["NIL"], header=False, columns=columns)
    assert typed.columns == [*columns]
    assert typed.types == [*columns.values()]
    with pytest.raises(SqlError, match="compression"):
        t.to_parquet(tmp_path / "z.parquet", compression="zip")  # type: ignore[arg-type]
    with pytest.raises(BamQueryError):
        t.to_csv(tmp_path / "no" / "such" / "folder.csv")
    assert not (tmp_path / "z.parquet").exists()


def test_execute_and_the_connection_s_own_rows(own) -> None:
    relation = own.execute("SELECT * FROM range(3) AS t(n)")
    assert relation.execute() is relation
    assert own.fetchone() == (0,)
    assert own.fetchmany(1) == [(1,)]
    assert own.fetchall() == [(2,)]
    assert own.description == [("n", "BIGINT", None, None, None, None, None)]
    assert own.execute("SELECT 1 AS a").to_arrow() == own.to_arrow_table()
    assert own.df()["a"].tolist() == [1]
    assert own.to_arrow_reader().read_all().num_rows == 1
    own.execute("CREATE TABLE u (a BIGINT)")
    own.executemany("INSERT INTO u VALUES (?)", [[1], [2]])
    assert own.query("SELECT sum(a) FROM u").fetchall() == [(3,)]
    with pytest.raises(BamQueryError, match="empty"):
        own.executemany("INSERT INTO u VALUES (?)", [])
    own.commit()
    for wrong in (own.begin, own.rollback):
        with pytest.raises(bamquery.UnsupportedError, match="every statement commits by itself"):
            wrong()
    with bamquery.connect() as fresh:
        assert fresh.description is None
        with pytest.raises(BamQueryError, match=r"call execute\(\) first"):
            fresh.fetchall()


def test_cursors(own) -> None:
    own.execute("SELECT 1 AS a")
    own.register("frame_", TRIPS)
    with own.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM frame_")
        cursor.set(threads=2)
        assert own.fetchone() == (1,)
        assert cursor.fetchone() == (12,)
        assert own.settings.threads == 2
    assert cursor.closed
    assert not own.closed
    for use in (
        lambda: cursor.sql("SELECT 1"),
        lambda: cursor.table("trips"),
        cursor.cursor,
        cursor.__enter__,
    ):
        with pytest.raises(BamQueryError, match="the connection is closed"):
            use()
    other = own.duplicate()
    assert other.sql("SELECT 1").fetchall() == [(1,)]


def test_readers(own) -> None:
    many = own.sql("FROM range(10) AS t(n)")
    sizes = [batch.num_rows for batch in many.arrow(4)]
    assert sum(sizes) == 10
    assert max(sizes) <= 4
    with many.run() as result:
        assert result.table().num_rows == 10
