"""Arrow streams: for other libraries, under other schemas, and in batches of a size."""

from __future__ import annotations

import duckdb
import narwhals
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bamquery
from tests.unit.face.frames.cases import dictionary


@pytest.fixture
def relation(con):
    return con.sql("SELECT i, 'x' || i AS s FROM range(5) r(i)")


ROWS = [(i, f"x{i}") for i in range(5)]


def test_other_libraries_take_it(relation):
    assert pa.table(relation).to_pylist() == [{"i": i, "s": s} for i, s in ROWS]
    assert pl.DataFrame(relation).rows() == ROWS
    assert list(pd.DataFrame.from_arrow(relation).itertuples(index=False, name=None)) == ROWS
    assert duckdb.sql("FROM relation").fetchall() == ROWS
    assert relation.to_dicts() == pa.table(relation).to_pylist()
    assert not hasattr(relation, "__dataframe__")


@pytest.mark.parametrize("backend", ["pyarrow", "polars", "pandas"])
def test_narwhals_takes_it(relation, backend):
    frame = narwhals.from_arrow(relation, backend=backend)
    found = frame.filter(narwhals.col("i") > 2).select("s")
    assert found.to_dict(as_series=False) == {"s": ["x3", "x4"]}


def test_the_schema_runs_nothing(relation, monkeypatch):
    monkeypatch.setattr(relation, "run", lambda: pytest.fail("it was run"))
    assert pa.schema(relation) == relation.schema


def test_another_schema_can_be_asked_for(relation):
    schema = pa.schema([("i", pa.float32()), ("s", pa.string())])
    found = pa.RecordBatchReader.from_stream(relation, schema).read_all()
    assert found.schema == schema
    assert found["i"].to_pylist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    impossible = pa.schema([("i", pa.int64()), ("s", pa.int64())])
    with pytest.raises(pa.ArrowInvalid):
        pa.RecordBatchReader.from_stream(relation, impossible).read_all()


def test_a_stream_says_what_failed(con):
    failing = con.sql("SELECT CAST(s AS INTEGER) AS n FROM (VALUES ('1'), ('x')) t(s)")
    with pytest.raises(Exception, match="cannot be cast to INTEGER"):
        pa.table(failing)


@pytest.mark.parametrize("rows", [1, 7, 1000, 4999, 1_000_000])
def test_batches_of_a_size(filled, rows):
    with bamquery.connect(filled, threads=1) as con:
        relation = con.sql("SELECT position, word FROM numbers WHERE position % 3 = 0 AND position < 21000")
        batches = list(relation.to_batches(rows=rows))
        words = relation.to_arrow()["word"].to_pylist()
    assert all(batch.num_rows == rows for batch in batches[:-1])
    assert 1 <= batches[-1].num_rows <= rows
    assert [x for batch in batches for x in batch.column(0).to_pylist()] == list(range(0, 21000, 3))
    assert [x for batch in batches for x in batch.column(1).to_pylist()] == words


def test_batches_of_no_rows(relation):
    assert list(relation.filter("i > 9").to_batches(rows=3)) == []


def test_small_batches_need_little_of_a_large_answer(con):
    """The query goes on only as batches are taken."""
    batches = con.sql("SELECT i FROM range(1000000000000) r(i)").to_batches(rows=10)
    assert [next(batches).column(0).to_pylist()[0] for _ in range(3)] == [0, 10, 20]
    batches.close()


def test_dictionaries_of_several_batches_are_one(con):
    words = ["a", "b", None, "c"] * 3
    batches = dictionary(con, words).to_batches(rows=5)
    assert [value for batch in batches for value in batch.column(0).to_pylist()] == words
