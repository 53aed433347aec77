"""What a column becomes: as documented, as DuckDB has it, and by its type alone."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from tests.unit.face.frames.cases import EXPRESSIONS, ROWS, STATES, dictionary, query

DOCUMENT = Path(__file__).parents[4] / "docs" / "python" / "frames.md"
ROW = re.compile(r"^\| ([A-Z][^|]*) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TYPES = {name: others for name, *others in ROW.findall(DOCUMENT.read_text()) if name != "SQL"}
KINDS = list(EXPRESSIONS)
NO_POLARS = {"INTERVAL"}


def test_every_type_is_documented():
    assert set(TYPES) == set(EXPRESSIONS)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", KINDS)
def test_as_documented_whatever_the_values(con, kind, state):
    relation = con.sql(query(kind, state))
    [name] = relation.types
    assert name == ("DECIMAL(38,0)" if kind == "HUGEINT" else kind)
    pandas, polars, numpy, _ = TYPES[kind]
    frame = relation.to_pandas()
    assert str(frame["x"].dtype) == pandas
    array = relation.to_numpy()["x"]
    assert str(array.dtype) == numpy
    assert array.flags.writeable
    assert len(frame) == len(array) == (0 if state == "no rows" else ROWS)
    if kind not in NO_POLARS:
        assert str(relation.to_polars().schema["x"]) == polars


@pytest.mark.filterwarnings("ignore:The inplace keyword:Warning")  # DuckDB's, of pandas
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_duckdbs(con, kind, state):
    sql = query(kind, state)
    with duckdb.connect() as other:
        other.execute("SET TimeZone = 'UTC'")
        wanted = other.sql(sql).df()["x"]
        arrays = other.sql(sql).fetchnumpy()["x"]
    mine = con.sql(sql).to_pandas()["x"]
    if kind == "BLOB":
        wanted = wanted.map(lambda value: value if value is pd.NA else bytes(value))
    pd.testing.assert_series_equal(
        mine.astype(object).where(mine.notna(), None),
        wanted.astype(object).where(wanted.notna(), None),
        check_names=False,
    )
    array = con.sql(sql).to_numpy()["x"]
    assert isinstance(array, np.ma.MaskedArray) == (state in ("some nulls", "only nulls"))
    mask = np.ma.getmaskarray(array)
    assert mask.tolist() == np.ma.getmaskarray(arrays).tolist()
    values = [bytes(v) if kind == "BLOB" else v for v in np.ma.getdata(arrays)[~mask]]
    np.testing.assert_array_equal(np.ma.getdata(array)[~mask], np.array(values, array.dtype))


@pytest.mark.parametrize("values", [["a", "b", "a"], ["a", None], [None, None], []])
def test_dictionaries_are_categories(con, values):
    relation = dictionary(con, values)
    assert relation.types == ["VARCHAR"]
    frame = relation.to_pandas()
    assert frame["x"].dtype.name == "category"
    assert frame["x"].dtype.categories.dtype == "str"
    assert [None if pd.isna(value) else value for value in frame["x"]] == values
    assert relation.to_numpy()["x"].dtype == object
    assert relation.to_polars()["x"].to_list() == values


def test_huge_integers_are_chosen(con):
    fits = con.sql("SELECT sum(i) AS x FROM range(10) r(i) UNION ALL SELECT NULL ORDER BY x")
    assert fits.to_pandas()["x"].dtype == "float64"
    assert fits.to_pandas(hugeint="int64")["x"].dtype == "Int64"
    assert fits.to_pandas(hugeint="int64")["x"].tolist() == [45, pd.NA]
    assert fits.to_pandas(hugeint="object")["x"].tolist() == [45, None]
    assert fits.to_numpy(hugeint="int64")["x"].dtype == "int64"
    assert fits.to_numpy(hugeint="int64")["x"].tolist() == [45, None]
    assert con.sql("SELECT 1::HUGEINT x WHERE false").to_pandas(hugeint="int64")["x"].dtype == "Int64"
    too_large = con.sql("SELECT 9223372036854775808::HUGEINT AS big")
    for convert in (too_large.to_pandas, too_large.to_numpy):
        with pytest.raises(Exception, match='column "big" holds a HUGEINT that does not fit int64'):
            convert(hugeint="int64")
    assert too_large.to_pandas(hugeint="object")["big"].tolist() == [2**63]


def test_decimals_are_chosen(con):
    relation = con.sql("SELECT 1.50::DECIMAL(5,2) AS x, 2::HUGEINT AS h")
    assert relation.to_pandas()["x"].tolist() == [1.5]
    exact = relation.to_pandas(decimals="decimal")
    assert [str(value) for value in exact["x"]] == ["1.50"]
    assert exact["h"].dtype == "float64"
    assert str(relation.to_pandas(decimals="arrow")["x"].dtype) == "decimal128(5, 2)[pyarrow]"
    assert [str(value) for value in relation.to_numpy(decimals="decimal")["x"]] == ["1.50"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda r: r.to_pandas(hugeint="int32"),
            "hugeint is one of 'float64', 'int64', 'object', not 'int32'",
        ),
        (lambda r: r.to_pandas(decimals=None), "decimals is one of 'float', 'decimal', 'arrow', not None"),
        (lambda r: r.to_numpy(decimals="arrow"), "decimals is one of 'float', 'decimal', not 'arrow'"),
    ],
)
def test_choices_that_are_none(con, call, message):
    with pytest.raises(ValueError, match=message):
        call(con.sql("SELECT 1 / 0"))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT DATE '5000000-01-01' AS far", 'column "far" holds 5000000-01-01, which is too far away'),
        ("SELECT INTERVAL 300000 YEAR AS far", 'column "far" holds intervals that are too long'),
    ],
)
def test_what_is_too_far_away(con, sql, message):
    for convert in ("to_pandas", "to_numpy"):
        with pytest.raises(Exception, match=message):
            getattr(con.sql(sql), convert)()
    assert con.sql(sql).to_arrow().num_rows == 1


def test_the_last_days_and_intervals_that_fit(con):
    sql = "SELECT DATE '294246-12-31' AS d, INTERVAL 290000 YEAR AS i"
    assert con.sql(sql).to_numpy()["d"] == np.datetime64("294246-12-31", "us")
    assert con.sql(sql).to_numpy()["i"].astype("i8") == 290000 * 360 * 86_400_000_000


def test_the_end_of_a_day(con):
    relation = con.sql("SELECT TIME '24:00:00' AS t UNION ALL SELECT NULL ORDER BY t")
    assert relation.to_pandas()["t"].tolist() == ["24:00:00", None]
    assert relation.to_numpy()["t"].tolist() == ["24:00:00", None]
    with pytest.raises(Exception, match='column "t" holds the time 24:00:00'):
        relation.to_polars()


def test_names_that_come_again(con):
    relation = con.sql("SELECT 1 AS a, 2 AS a, 3 AS A")
    names = ["a", "a_1", "A_2"]
    assert list(relation.to_pandas().columns) == names
    assert relation.to_polars().columns == names
    assert list(relation.to_numpy()) == names
    assert relation.to_dicts() == [dict(zip(names, (1, 2, 3), strict=True))]


def test_frames_are_the_callers_own(con):
    """What a query read may be mapped, and shared with other answers."""
    con.sql("CREATE TABLE t AS SELECT i::DOUBLE AS f, i FROM range(5) r(i)")
    for sql in ("FROM t", "SELECT f FROM t", "SELECT i FROM t"):
        frame = con.sql(sql).to_pandas()
        frame.iloc[0, 0] = 7
        for array in con.sql(sql).to_numpy().values():
            array[0] = 7
    assert con.sql("SELECT f, i FROM t LIMIT 1").fetchall() == [(0.0, 0)]
