"""Joins that stand on each other: which build side is read first, and what others read less by it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.connection.connection import Connection
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.profiling.scan_profile import ScanProfile

ROWS, PARTS = 40_000, 20_000


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """Sold things (`sales`), what they are (`parts`), and who has them (`stock`: a quarter of the sales)."""
    random = np.random.default_rng(3)
    number = np.arange(PARTS)
    with bamquery.connect(str(tmp_path_factory.mktemp("order") / "t.bq"), device="cpu", threads=2) as made:
        made.register("sales_", pa.table({"part": random.integers(0, PARTS, ROWS), "price": np.arange(ROWS)}))
        made.register("parts_", pa.table({"id": number, "kind": number % 100}))
        made.register("stock_", pa.table({"of_part": number // 2 * 4 % PARTS, "shelf": number}))
        for name in ("sales", "parts", "stock"):
            made.sql(f"CREATE TABLE {name} AS SELECT * FROM {name}_")
        yield made


JOINS = "FROM sales JOIN parts ON part = id JOIN stock ON part = of_part"


def _walk(profile: OperatorProfile) -> Iterator[OperatorProfile]:
    yield profile
    for child in profile.children:
        yield from _walk(child)


def _run(con: Connection, sql: str) -> tuple[list[str], dict[str, int]]:
    """The rows in some order, and for each scan how many rows came of it; no time is negative."""
    result = con.sql(sql)
    rows = sorted(map(repr, result.to_arrow().to_pylist()))
    operators = list(_walk(result.profile.root))
    assert all(operator.seconds >= 0 for operator in operators)
    return rows, {one.source: one.rows for one in operators if isinstance(one, ScanProfile)}


@pytest.mark.parametrize("computed", [False, True], ids=["columns", "an expression"])
def test_few_keys_are_known_before_many_rows_are_read(con: Connection, computed: bool) -> None:
    """Of a join below: also where its columns come through a projection and a filter."""
    sql = f"SELECT price, shelf {JOINS} WHERE kind = 8 AND shelf < 19990"
    if computed:
        inner = "SELECT part AS p, price + kind AS x FROM sales JOIN parts ON part = id WHERE kind = 8"
        sql = f"SELECT x, shelf FROM ({inner}) JOIN stock ON p = of_part WHERE x % 3 < 2"
    rows, found = _run(con, sql)
    assert rows
    assert found["stock"] < PARTS // 10
    con.sql("SET dynamic_filters = off")
    without, all_ = _run(con, sql)
    con.sql("RESET dynamic_filters")
    assert rows == without
    assert all_["stock"] >= PARTS - 10


@pytest.mark.parametrize("join", ["LEFT JOIN", "FULL JOIN", "RIGHT JOIN"])
def test_rows_without_a_partner_stay(con: Connection, join: str) -> None:
    for sql in (
        f"SELECT price, shelf FROM sales JOIN parts ON part = id AND kind = 8 {join} stock ON part = of_part",
        f"SELECT price, shelf FROM sales {join} parts ON part = id AND kind = 8 JOIN stock ON part = of_part",
    ):
        rows, _ = _run(con, sql)
        con.sql("SET dynamic_filters = off")
        without, _ = _run(con, sql)
        con.sql("RESET dynamic_filters")
        assert rows == without


def test_where_one_side_is_empty_others_are_not_read(con: Connection) -> None:
    rows, found = _run(con, f"SELECT price, shelf {JOINS} WHERE kind = 1000")
    assert not rows
    assert found["sales"] == 0
    assert found["stock"] == 0


def test_rows_that_nobody_asks_for(con: Connection) -> None:
    assert len(con.sql(f"SELECT price {JOINS} WHERE kind < 50 LIMIT 3").to_arrow()) == 3
    with pytest.raises(bamquery.ExecutionError):
        con.sql(f"SELECT CAST('x' || price AS INTEGER) {JOINS} WHERE kind = 8").to_arrow()
    assert con.sql(f"SELECT count(*) {JOINS} WHERE kind = 8").fetchone() is not None


def test_what_does_not_fit_in_memory_goes_to_files(con: Connection) -> None:
    wide = (
        f"SELECT price, s1.shelf, repeat('x', 200) AS t {JOINS.replace('stock', 'stock s1')} WHERE kind < 90"
    )
    rows, _ = _run(con, wide)
    con.sql("SET memory_limit = '700kB'")
    try:
        result = con.sql(wide)
        again = sorted(map(repr, result.to_arrow().to_pylist()))
        assert any("partitions" in one.details for one in _walk(result.profile.root))
    finally:
        con.sql("RESET memory_limit")
    assert rows == again
