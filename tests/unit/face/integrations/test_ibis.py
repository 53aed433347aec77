"""Ibis's backend: connections, tables, files, and what it refuses."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ibis
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from ibis import _
from ibis.common import exceptions as exc

import bamquery
import bamquery.integrations.ibis as integration

pytestmark = pytest.mark.filterwarnings("ignore:The .future.infer_string.")  # Ibis sets it

ROWS = pa.table({"a": [1, 2, 3, None], "b": ["x", "y", None, "x"]})


@pytest.fixture
def con() -> Iterator[integration.Backend]:
    connected = integration.connect()
    yield connected
    connected.disconnect()


def versions(con: integration.Backend, name: str) -> int:
    return con.con.native_connection._session.database.table(name).snapshot().version


def test_connections(tmp_path: Path) -> None:
    con = integration.connect(tmp_path / "db", threads=1)
    con.create_table("t", ROWS)
    assert con.version == bamquery.__version__
    assert con.current_database == "main"
    assert con.list_databases() == ["main"]
    assert con.con.native_connection.settings.threads == 1
    con.disconnect()
    with bamquery.connect(tmp_path / "db") as native:
        over = integration.Backend.from_connection(native)
        assert over.list_tables() == ["t"]
        assert over.table("t").a.sum().execute() == 6
    with pytest.raises(bamquery.dbapi.ProgrammingError, match="memory_limit"):
        integration.connect(memory_limt="1GB")


def test_a_table_is_one_commit_with_ibis_types(con: integration.Backend) -> None:
    table = con.create_table("t", ROWS)
    assert table.schema() == ibis.schema({"a": "int64", "b": "string"})
    sums = con.create_table("sums", table.group_by("b").agg(s=_.a.sum()))
    assert sums.schema()["s"].is_int64()  # BamQuery's own sum is wider
    with pytest.raises(bamquery.dbapi.ProgrammingError, match="exists"):
        con.create_table("t", ROWS)
    before = versions(con, "t")
    con.insert("t", {"a": [9], "b": ["z"]})
    con.insert("t", pd.DataFrame({"b": ["w"], "a": [10]}))
    assert versions(con, "t") == before + 2
    assert table.a.sum().execute() == 25
    con.create_table("t", table.filter(_.a > 8), overwrite=True)
    assert sorted(con.table("t").a.execute()) == [9, 10]
    con.insert("t", ROWS.slice(0, 1), overwrite=True)
    assert con.table("t").execute().to_dict("list") == {"a": [1], "b": ["x"]}
    assert con.list_tables(like="^t") == ["t"]


def test_not_null(con: integration.Backend) -> None:
    schema = ibis.schema({"a": "!int64", "b": "string"})
    assert con.create_table("empty", schema=schema).schema() == schema
    filled = con.create_table("filled", ROWS.slice(0, 2), schema=schema)
    assert filled.schema() == schema
    assert filled.count().execute() == 2
    with pytest.raises(bamquery.dbapi.IntegrityError):
        con.create_table("bad", ROWS, schema=schema)
    assert sorted(con.list_tables()) == ["empty", "filled"]
    con.create_table("filled", ROWS.slice(0, 1), schema=schema, overwrite=True)
    assert con.table("filled").count().execute() == 1
    with pytest.raises(exc.UnsupportedOperationError, match="NOT NULL"):
        con.insert("filled", ROWS.slice(0, 1), overwrite=True)
    con.truncate_table("filled")
    assert con.table("filled").schema() == schema
    assert con.table("filled").count().execute() == 0


def test_views_names_and_ends(con: integration.Backend) -> None:
    table = con.create_table('odd "t', ROWS)
    con.create_view("v", table.filter(_.a > 1))
    assert con.table("V").count().execute() == 2
    con.rename_table('odd "t', "t")
    con.drop_view("v")
    con.drop_table("t")
    con.drop_table("t", force=True)
    con.drop_view("v", force=True)
    assert con.list_tables() == []
    with pytest.raises(exc.TableNotFound, match="absent"):
        con.table("absent")
    with pytest.raises(exc.UnsupportedArgumentError, match="main"):
        con.table("t", database="other")


def test_objects_are_forgotten_once_they_are_stored(con: integration.Backend) -> None:
    con.create_table("t", ROWS)
    con.insert("t", ROWS)
    assert not con.con.registered_names
    assert con.execute(ibis.memtable(ROWS).a.sum()) == 6
    assert con.list_tables() == ["t"]


def test_files(con: integration.Backend, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(ROWS, tmp_path / "1.parquet")
    pyarrow.parquet.write_table(ROWS, tmp_path / "2.parquet")
    pyarrow.csv.write_csv(ROWS, tmp_path / "rows.csv")
    (tmp_path / "rows.json").write_text('{"a": 1}\n{"a": 2}\n')
    assert con.read_parquet(tmp_path / "*.parquet", table_name="files").a.sum().execute() == 12
    assert con.read_parquet([tmp_path / "1.parquet", tmp_path / "2.parquet"]).count().execute() == 8
    assert con.read_csv(tmp_path / "rows.csv").a.sum().execute() == 6
    assert con.read_csv(tmp_path / "rows.csv", header=False).count().execute() == 5
    assert con.read_json(tmp_path / "rows.json").a.sum().execute() == 3
    assert "files" in con.list_tables()
    with pytest.raises(bamquery.dbapi.Error, match="absent"):
        con.read_parquet(tmp_path / "absent.parquet")


def test_sql(con: integration.Backend) -> None:
    con.create_table("t", ROWS)
    assert con.sql("SELECT a FROM t WHERE a > 1").filter(_.a < 3).execute().a.tolist() == [2]
    assert con.table("t").alias("u").sql("SELECT count(*) AS n FROM u").n.execute().tolist() == [4]
    assert con.raw_sql("SHOW TABLES").fetchall() == [("t",)]
    assert ibis.to_sql(con.table("t").a.sum()).startswith("SELECT")


def test_answers(con: integration.Backend) -> None:
    table = con.create_table("t", ROWS)
    assert table.to_pyarrow().schema == pa.schema({"a": pa.int64(), "b": pa.string()})
    assert table.a.to_pyarrow().to_pylist() == [1, 2, 3, None]
    assert table.a.sum().to_pyarrow() == pa.scalar(6)
    reader = con.table("t").to_pyarrow_batches(chunk_size=2)
    assert [batch.num_rows for batch in reader] == [2, 2]
    assert table.to_pandas().b.isna().tolist() == [False, False, True, False]
    assert table.to_polars().height == 4
    assert table.a.max().execute() == 3
    null = con.execute(ibis.null())
    assert null is None or pd.isna(null)
    day = ibis.timestamp("2024-01-02 00:00:00") - ibis.timestamp("2024-01-01 00:00:00")
    assert con.execute(day) == pd.Timedelta(days=1)
    assert con.to_pyarrow(day).as_py() == datetime.timedelta(days=1)
    assert con.execute(ibis.literal(1).cast("decimal(10, 2)")) == 1
    cached = table.filter(_.a > 1).cache()
    con.truncate_table("t")
    assert cached.count().execute() == 2


def test_an_answer_beyond_memory_streams(con: integration.Backend) -> None:
    reader = con.sql("SELECT range AS a FROM range(1000000000000)").to_pyarrow_batches(chunk_size=10)
    assert reader.read_next_batch().column(0).to_pylist() == list(range(10))
    reader.close()


@pytest.mark.parametrize(
    "expression",
    [
        lambda t: t.a.collect(),
        lambda t: ibis.array([t.a]),
        lambda t: t.b.split(","),
        lambda t: ibis.random(),
        lambda t: ibis.uuid(),
        lambda t: t.a.hash(),
        lambda t: t.nunique(),
        lambda t: ibis.range(3),
        lambda t: ibis.struct({"x": t.a}),
        lambda t: t.b.cast("json"),
        lambda t: t.b.cast("uuid"),
        lambda t: t.a.cast("decimal(50, 2)"),
    ],
)
def test_what_there_is_not_is_refused_before_it_runs(con: integration.Backend, expression: Any) -> None:
    table = con.create_table("t", ROWS)
    refusals = (
        exc.OperationNotDefinedError,
        exc.UnsupportedOperationError,
        exc.UnsupportedBackendType,
    )
    with pytest.raises(refusals):
        con.compile(expression(table))


def test_other_refusals(con: integration.Backend) -> None:
    table = con.create_table("t", ROWS)

    @ibis.udf.scalar.python
    def twice(value: int) -> int:
        return 2 * value

    with pytest.raises(exc.UnsupportedOperationError, match="functions of Python: twice"):
        table.mutate(c=twice(table.a)).execute()
    with pytest.raises(exc.UnsupportedOperationError, match="MERGE"):
        con.upsert("t", ROWS, on="a")
    with pytest.raises(exc.UnsupportedArgumentError, match="temporary"):
        con.create_table("u", ROWS, temp=True)
    with pytest.raises(exc.UnsupportedOperationError, match="list"):
        con.sql("SELECT [1] AS a")
    with pytest.raises(ValueError, match="must be specified"):
        con.create_table("u")
    with pytest.raises(exc.IbisTypeError, match="nothing"):
        con.create_table("u", pa.table({"nothing": pa.nulls(2)}))


def test_a_function_of_sql_by_name(con: integration.Backend) -> None:
    @ibis.udf.scalar.builtin
    def bit_length(text: str) -> int: ...

    table = con.create_table("t", ROWS)
    assert table.aggregate(n=bit_length(table.b).sum()).n.execute().tolist() == [24]
