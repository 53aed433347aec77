"""ORDER BY ... LIMIT reads what may be among the first rows only, and gives the rows that it gave before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from decimal import Decimal
from itertools import product

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.connection.connection import Connection
from tests.forced_forms import forced_form
from tests.oracle import connect
from tests.selection.effort import spread

ROWS = 150_000


def _table() -> pa.Table:
    random = np.random.default_rng(3)
    order = np.arange(ROWS)
    some = random.random(ROWS) < 0.01
    reals = np.where(random.random(ROWS) < 0.001, np.nan, random.normal(0, 1e6, ROWS))
    return pa.table(
        {
            "id": pa.array(order),
            "steps": pa.array(order // 5000, pa.int16()),
            "holes": pa.array(order - ROWS // 2, pa.int32(), mask=some),
            "noise": pa.array(random.permutation(ROWS)),
            "real": pa.array(reals, mask=some),
            "empty": pa.array([None] * ROWS, pa.float64()),
            "money": pa.array([Decimal(int(n)).scaleb(-2) for n in random.permutation(ROWS)]),
            "moment": pa.array(order.astype("datetime64[s]").astype("datetime64[us]")),
            "text": pa.array([f"row {n:06}" for n in order], pa.large_string()),
            "word": pa.array([f"w{n // 700:03}" for n in order], pa.large_string()).dictionary_encode(),
            "payload": pa.array(random.random(ROWS)),
        }
    )


@pytest.fixture(scope="module", params=["plain", "packed"])
def con(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    path = tmp_path_factory.mktemp("thresholds") / "t.bq"
    with (
        forced_form("packed") if request.param == "packed" else nullcontext(),
        bamquery.connect(str(path), device="cpu", threads=2) as made,
    ):
        table = _table()
        made.register("rows_", table.slice(0, 100_000))
        made.register("more_", table.slice(100_000))
        made.sql("CREATE TABLE t AS SELECT * FROM rows_")
        made.sql("INSERT INTO t SELECT * FROM more_")
        yield made


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as made:
        made.register("t_", _table())
        made.sql("CREATE TABLE t AS SELECT * FROM t_")
        yield made


def _bytes(con: Connection, sql: str, setting: str = "on") -> tuple[list[str], int]:
    con.sql(f"SET dynamic_filters = {setting}")
    result = con.sql(sql)
    rows = [repr(row) for row in result.fetchall()]
    con.sql("RESET dynamic_filters")
    return rows, result.profile.io.bytes_read


COLUMNS = ["id", "steps", "holes", "noise", "real", "empty", "money", "moment", "text", "word"]
ORDERS = ["ASC", "DESC", "ASC NULLS FIRST", "DESC NULLS FIRST"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("column", "order", "condition"), spread(product(COLUMNS, ORDERS, ["", "WHERE payload < 0.3"]), 5)
)
def test_answers_stay(
    con: Connection, oracle: duckdb.DuckDBPyConnection, column: str, order: str, condition: str
) -> None:
    for limit in ("LIMIT 7", "LIMIT 40 OFFSET 3", "LIMIT 6000"):
        sql = f"SELECT {column}, id FROM t {condition} ORDER BY {column} {order}, id DESC {limit}"
        expected = [repr(row) for row in oracle.sql(sql).fetchall()]
        assert _bytes(con, sql)[0] == expected


@pytest.mark.parametrize(
    ("order", "share"),
    [
        ("id", 100),
        ("id DESC", 100),
        ("holes DESC", 100),
        ("holes NULLS FIRST", 1.2),
        ("moment DESC, payload", 100),
        ("steps DESC, payload", 10),
        ("CAST(holes AS DOUBLE) DESC", 100),
        ("text DESC", 30),
        ("word DESC, payload", 30),
        ("noise", 2),
        ("real DESC", 2),
        ("money", 2),
    ],
)
def test_less_is_read(con: Connection, order: str, share: float) -> None:
    sql = f"SELECT * FROM t ORDER BY {order} LIMIT 5"
    rows, few = _bytes(con, sql)
    same, all_ = _bytes(con, sql, "off")
    assert rows == same
    assert few < all_ / share


@pytest.mark.parametrize("order", ["id", "id DESC"])
def test_behind_a_condition(con: Connection, order: str) -> None:
    sql = f"SELECT * FROM t WHERE payload > 0.9 ORDER BY {order} LIMIT 5"
    assert _bytes(con, sql)[1] < _bytes(con, sql, "off")[1] / 1.5


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t ORDER BY id LIMIT 0",
        "SELECT id FROM t ORDER BY id DESC LIMIT 3 OFFSET 149999",
        "SELECT id FROM t ORDER BY id LIMIT 200000",
        "SELECT id FROM t WHERE id < 0 ORDER BY id LIMIT 3",
        "SELECT id FROM (SELECT id FROM t WHERE noise < 99 UNION ALL SELECT -id FROM t) ORDER BY id LIMIT 9",
        "SELECT a.id FROM t a JOIN t b ON a.noise = b.id WHERE b.payload < 0.5 ORDER BY a.id DESC LIMIT 9",
        "SELECT steps, count(*) FROM t GROUP BY steps ORDER BY steps DESC LIMIT 3",
        "SELECT id FROM (SELECT id FROM t LIMIT 5000) ORDER BY id DESC LIMIT 3",
        "SELECT id FROM (SELECT id, payload FROM t ORDER BY noise LIMIT 5000) ORDER BY id DESC LIMIT 3",
        "SELECT id, row_number() OVER (PARTITION BY id) FROM t ORDER BY id DESC LIMIT 3",
        "SELECT -id AS x FROM t ORDER BY x LIMIT 3",
    ],
)
def test_other_plans(con: Connection, oracle: duckdb.DuckDBPyConnection, sql: str) -> None:
    expected = [repr(row) for row in oracle.sql(sql).fetchall()]
    assert _bytes(con, sql)[0] == expected


def test_equal_rows_stay_in_order(con: Connection) -> None:
    rows, _ = _bytes(con, "SELECT steps, id FROM t ORDER BY steps LIMIT 20")
    assert rows == [repr((0, n)) for n in range(20)]


def test_tables_whose_columns_changed(con: Connection) -> None:
    con.sql("CREATE TABLE changed AS SELECT id, noise FROM t")
    con.sql("ALTER TABLE changed ADD COLUMN extra INTEGER DEFAULT 5")
    con.sql("INSERT INTO changed SELECT id + 200000, noise, id % 10 FROM t")
    for order in ("extra DESC, id", "extra, id DESC", "id DESC", "noise, id"):
        sql = f"SELECT * FROM changed ORDER BY {order} LIMIT 6"
        assert _bytes(con, sql)[0] == _bytes(con, sql, "off")[0]
    con.sql("DROP TABLE changed")


def test_explain_shows_the_bound(con: Connection) -> None:
    text = con.sql("SELECT id FROM t ORDER BY id DESC LIMIT 5").explain(analyze=True)
    assert "dynamic filters: (id >= 149995) (first 5 in order)" in text
    assert (
        "dynamic filters: id (first 5 in order)" in con.sql("SELECT id FROM t ORDER BY id LIMIT 5").explain()
    )


def test_without_zone_maps(con: Connection) -> None:
    con.sql("SET zone_maps = off")
    rows, _ = _bytes(con, "SELECT id FROM t ORDER BY id DESC LIMIT 3")
    con.sql("RESET zone_maps")
    assert rows == [repr((n,)) for n in (149_999, 149_998, 149_997)]
