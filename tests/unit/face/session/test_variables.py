"""SET VARIABLE and what reads it, beside what tests/sql/select/variables.slt asks DuckDB, too."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

import bamquery
from bamquery.errors import SqlError


@pytest.fixture
def con() -> Iterator[bamquery.Connection]:
    with bamquery.connect() as connection:
        yield connection


def test_a_parameter_comes_before_a_variable(con: bamquery.Connection) -> None:
    con.sql("SET VARIABLE x = 1")
    assert con.sql("SELECT $x, getvariable('x')", {"x": 5}).fetchall() == [(5, 1)]
    assert con.sql("SELECT $x, $y", {"y": 5}).fetchall() == [(1, 5)]


def test_one_text_sets_and_reads(con: bamquery.Connection) -> None:
    text = "SET VARIABLE x = 1; SET VARIABLE X = $x + 1; SELECT $x"
    assert con.sql(text).fetchall() == [(2,)]
    with pytest.raises(SqlError, match=r"no value for parameter \$y, and no variable"):
        con.sql("SET VARIABLE y = 1; RESET VARIABLE y; SELECT $y")


def test_a_relation_keeps_what_it_saw(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE t AS SELECT 1 AS a")
    con.sql("SET VARIABLE x = 1")
    before = con.sql("SELECT a + getvariable('x') AS b FROM t")
    con.sql("SET VARIABLE x = 2")
    after = con.sql("SELECT a + getvariable('x') AS b FROM t")
    assert (before.fetchall(), after.fetchall()) == ([(2,)], [(3,)])


def test_what_fails_sets_nothing(con: bamquery.Connection) -> None:
    con.sql("SET VARIABLE x = 1")
    with pytest.raises(bamquery.BamQueryError):
        con.sql("SET VARIABLE x = CAST('a' || getvariable('x') AS INTEGER)")
    assert con.sql("SELECT $x").fetchall() == [(1,)]


def test_paths_and_options(con: bamquery.Connection, tmp_path: Path) -> None:
    con.sql(f"SET VARIABLE path = '{tmp_path / 'x.csv'}'")
    con.sql("SET VARIABLE delim = ';'")
    con.sql("COPY (SELECT 1 AS a, 2 AS b) TO $path (DELIMITER $delim)")
    assert (tmp_path / "x.csv").read_text() == "a;b\n1;2\n"
    query = "SELECT * FROM read_csv({}, delim = getvariable('delim'))"
    for path in ("$path", "getvariable('path')", "[getvariable('pa' || 'th')]"):
        assert con.sql(query.format(path)).fetchall() == [(1, 2)]
    con.sql("CREATE TABLE t (a INTEGER, b INTEGER)")
    con.sql("COPY t FROM $path (DELIMITER $delim)")
    assert con.sql("SELECT a, b FROM t").fetchall() == [(1, 2)]
    con.sql("SET VARIABLE n = 2")
    con.sql("SET threads = $n")
    assert con.settings.threads == 2


def test_cursors_share_variables_and_connections_do_not(con: bamquery.Connection) -> None:
    con.sql("SET VARIABLE x = 1")
    assert con.cursor().sql("SELECT $x").fetchall() == [(1,)]
    with bamquery.connect() as other:
        assert other.sql("SELECT getvariable('x')").fetchall() == [(None,)]


def test_variables_go_with_a_pickled_connection(tmp_path: Path) -> None:
    with bamquery.connect(tmp_path / "d") as con:
        con.sql("SET VARIABLE x = DATE '2020-01-31'; SET VARIABLE y = INTERVAL 2 DAY; SET VARIABLE z = NULL")
        with pickle.loads(pickle.dumps(con)) as other:
            given = con.sql("SELECT $x, $y, typeof($z)").fetchall()
            assert other.sql("SELECT $x, $y, typeof($z)").fetchall() == given


def test_every_type_is_kept(con: bamquery.Connection) -> None:
    constants = (
        *("1::UTINYINT", "-1::BIGINT", "170141183460469231731687303715884105727", "1.5::FLOAT", "1e300"),
        *("'a'::BLOB", "TIME '12:00:00'", "TIMESTAMP '2020-01-01'", "TIMESTAMPTZ '2020-01-01 00:00:00+00'"),
        *("'2020-01-01'::TIMESTAMP_NS", "INTERVAL '1 month -2 days'", "TRUE", "NULL::DATE", "'ß'"),
    )
    for constant in constants:
        con.sql(f"SET VARIABLE x = {constant}")
        kept = con.sql("SELECT $x AS x, typeof(getvariable('x')) AS t").fetchall()
        assert kept == con.sql(f"SELECT {constant} AS x, typeof({constant}) AS t").fetchall()


def test_a_name_that_is_a_variable_s_value(con: bamquery.Connection) -> None:
    con.sql("SET VARIABLE x = 'Y'; SET VARIABLE y = 7")
    assert con.sql("SELECT getvariable($x), getvariable(getvariable('x'))").fetchall() == [(7, 7)]
