"""What pandas, polars, narwhals and JupySQL do with databases."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import narwhals as nw
import pandas as pd
import polars as pl
import pytest
import sqlalchemy as sa

import bamquery
import bamquery.integrations.ibis
import bamquery.integrations.sqlalchemy
from bamquery import dbapi

FRAME = pd.DataFrame(
    {
        "i": [1, 2, 3],
        "x": [0.5, None, 2.5],
        "s": ["a", None, "c'"],
        "b": [True, False, True],
        "t": pd.to_datetime(["2024-01-01 10:00", None, "2024-01-03 00:00"]),
        "d": [datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 3)],
    }
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sa.Engine]:
    made = sa.create_engine(f"bamquery:///{tmp_path / 'db'}")
    yield made
    made.dispose()


def versions(engine: sa.Engine, name: str) -> int:
    with engine.connect() as con:
        native = con.connection.driver_connection.native_connection
        return native._session.database.table(name).snapshot().version


# pandas.


def test_pandas_there_and_back(engine: sa.Engine) -> None:
    assert FRAME.to_sql("t", engine, index=False) == 3
    back = pd.read_sql("t", engine)
    pd.testing.assert_frame_equal(back, FRAME.assign(d=pd.to_datetime(FRAME["d"])), check_dtype=False)
    assert str(back["i"].dtype) == "int64"
    assert str(back["b"].dtype) == "bool"
    assert str(back["t"].dtype).startswith("datetime64")


def test_to_sql_commits_once_a_call(engine: sa.Engine) -> None:
    FRAME.to_sql("t", engine, index=False)
    first = versions(engine, "t")
    FRAME.to_sql("t", engine, index=False, if_exists="append")
    assert versions(engine, "t") == first + 1
    FRAME.to_sql("t", engine, index=False, if_exists="append", method="multi")
    assert versions(engine, "t") == first + 2
    with pytest.raises(ValueError, match="exists"):
        FRAME.to_sql("t", engine, index=False)
    FRAME.head(1).to_sql("t", engine, index=False, if_exists="replace")
    assert len(pd.read_sql("SELECT * FROM t", engine)) == 1


def test_an_index_column_without_an_index(engine: sa.Engine) -> None:
    with pytest.warns(sa.exc.SAWarning, match="zone maps"):
        FRAME.to_sql("t", engine)
    assert pd.read_sql("SELECT * FROM t", engine)["index"].tolist() == [0, 1, 2]


def test_read_sql(engine: sa.Engine) -> None:
    FRAME.to_sql("t", engine, index=False)
    assert pd.read_sql("SELECT i FROM t WHERE i > ?", engine, params=(1,))["i"].tolist() == [2, 3]
    assert pd.read_sql(sa.text("SELECT i FROM t WHERE i > :n"), engine, params={"n": 2})["i"].tolist() == [3]
    chunks = list(pd.read_sql("SELECT i FROM t ORDER BY i", engine, chunksize=2))
    assert [chunk["i"].tolist() for chunk in chunks] == [[1, 2], [3]]
    assert pd.read_sql_table("t", engine, columns=["s"])["s"].tolist()[0] == "a"
    with engine.connect() as con:
        assert len(pd.read_sql("FROM t", con)) == 3


def test_read_sql_streams(engine: sa.Engine) -> None:
    with engine.connect() as con:
        chunks = pd.read_sql("SELECT range FROM range(1000000000000)", con, chunksize=3)
        assert next(iter(chunks))["range"].tolist() == [0, 1, 2]


def test_many_rows_by_to_sql(engine: sa.Engine) -> None:
    frame = pd.DataFrame({"a": range(30_000), "b": [f"text {i % 7}" for i in range(30_000)]})
    assert frame.to_sql("many", engine, index=False) == 30_000
    with engine.connect() as con:
        assert con.execute(sa.text("SELECT count(*), count(DISTINCT b) FROM many")).one() == (30_000, 7)


# polars.


def test_polars_there_and_back(engine: sa.Engine) -> None:
    frame = pl.DataFrame(
        {
            "i": [1, 2],
            "d": [datetime.date(2024, 1, 1), None],
            "n": [1.5, None],
            "s": ["a", "b"],
        }
    )
    assert frame.write_database("t", engine) == 2
    first = versions(engine, "t")
    frame.write_database("t", engine, if_table_exists="append")
    assert versions(engine, "t") == first + 1
    back = pl.read_database("SELECT * FROM t", engine)
    assert back.schema == frame.schema
    assert back.rows() == frame.rows() * 2


def test_polars_over_pep_249() -> None:
    query = "SELECT 1::TINYINT AS i, 1.25 AS d, 'x' AS s, DATE '2024-01-01' AS day, TRUE AS b FROM range(2)"
    with dbapi.connect() as con:
        frame = pl.read_database(query, con)
        assert frame.row(0) == (1, Decimal("1.25"), "x", datetime.date(2024, 1, 1), True)
        assert frame.schema == {
            "i": pl.Int8,
            "d": pl.Decimal(3, 2),
            "s": pl.String,
            "day": pl.Date,
            "b": pl.Boolean,
        }
        batches = pl.read_database("FROM range(5)", con, iter_batches=True, batch_size=2)
        assert [batch.height for batch in batches] == [2, 2, 1]


def test_polars_of_a_relation() -> None:
    with bamquery.connect() as con:
        assert pl.DataFrame(con.sql("SELECT range AS a FROM range(3)"))["a"].to_list() == [0, 1, 2]


# narwhals.


def test_narwhals_over_an_arrow_stream() -> None:
    with bamquery.connect() as con:
        relation = con.sql("SELECT range AS a, range % 2 AS k FROM range(10)")
        frame = nw.from_arrow(relation, backend="pyarrow")
        grouped = frame.group_by("k").agg(nw.col("a").sum()).sort("k")
        assert grouped.rows() == [(0, 20), (1, 25)]


@pytest.mark.filterwarnings("ignore:The .future.infer_string.")
def test_narwhals_lazily_over_ibis() -> None:
    con = bamquery.integrations.ibis.connect()
    con.con.native_connection.sql("CREATE TABLE t AS SELECT range AS a, range % 2 AS k FROM range(10)")
    lazy = nw.from_native(con.table("t"))
    assert isinstance(lazy, nw.LazyFrame)
    grouped = lazy.filter(nw.col("a") > 1).group_by("k").agg(nw.col("a").sum().alias("s")).sort("k")
    assert grouped.collect("pyarrow").rows() == [(0, 20), (1, 24)]
    con.disconnect()


# JupySQL.


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance()
    yield made
    from sql.connection import ConnectionManager

    for name in list(ConnectionManager.connections):
        ConnectionManager.close_connection_with_descriptor(name)
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_jupysql(shell: Any, tmp_path: Path) -> None:
    shell.run_line_magic("load_ext", "sql")
    shell.run_line_magic("config", "SqlMagic.displaycon = False")
    shell.run_line_magic("config", "SqlMagic.feedback = 0")
    shell.run_line_magic("sql", f"bamquery:///{tmp_path / 'db'}")
    shell.run_line_magic("sql", "CREATE TABLE t AS SELECT range AS a FROM range(4)")
    answer = shell.run_line_magic("sql", "SELECT sum(a) AS s FROM t")
    assert list(answer.dict()["s"]) == [6]
    frame = shell.run_cell_magic("sql", "", "SELECT a FROM t WHERE a > 2").DataFrame()
    assert frame["a"].tolist() == [3]
