"""Counts and extremes of a whole table without a row being read; the same query without zone maps agrees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pyarrow as pa
import pytest

import bamquery
from bamquery.connection.connection import Connection
from bamquery.errors import UnsupportedError
from tests.conformance.harness import random_table
from tests.forced_forms import forced_form
from tests.strategies import ALL_TYPES
from tests.values import plain, same

FIXED = [kind for kind in ALL_TYPES if not pa.types.is_null(kind)]
CALLS = "count(*), count(a), min(a), max(a)"


@pytest.fixture(params=["plain", "packed"])
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    with (
        forced_form("packed") if request.param == "packed" else nullcontext(),
        bamquery.connect(device="cpu") as found,
    ):
        yield found


def _both(connection: Connection, sql: str) -> tuple[pa.Table, bool]:
    """The answer, which is the same without zone maps, and whether nothing was read for it."""
    relation = connection.sql(sql)
    answer = relation.to_arrow()
    of_zones = "answered by: zone maps" in relation.explain(analyze=True)
    connection.sql("SET zone_maps = false")
    read = connection.sql(sql).to_arrow()
    connection.sql("SET zone_maps = true")
    assert answer.schema == read.schema
    for ours, theirs in zip(answer.columns, read.columns, strict=True):
        assert all(same(a, b, 0.0) for a, b in zip(plain(ours), plain(theirs), strict=True)), (ours, theirs)
    return answer, of_zones


@pytest.mark.parametrize("rows", [0, 3000])
@pytest.mark.parametrize("kind", FIXED, ids=str)
def test_every_type(connection: Connection, kind: pa.DataType, rows: int) -> None:
    connection.load("t", random_table([kind], rows))
    try:
        _, of_zones = _both(connection, f"SELECT {CALLS} FROM t")
    except UnsupportedError as reason:
        pytest.skip(str(reason))
    texts = pa.types.is_dictionary(kind) or any(
        test(kind) for test in (pa.types.is_large_string, pa.types.is_large_binary)
    )
    assert of_zones != texts


@pytest.mark.parametrize("values", [[float("nan")], [None], [float("nan"), 1.0, None], [-0.0, 0.0], []])
def test_values_that_have_no_bounds(connection: Connection, values: list[float | None]) -> None:
    connection.load("t", pa.table({"a": pa.array(values, pa.float64())}))
    assert _both(connection, f"SELECT {CALLS} FROM t")[1]


def test_several_fragments(connection: Connection) -> None:
    for start in (10, 0, 20):
        connection.load(
            "t", pa.table({"a": pa.array(range(start, start + 5)), "b": ["x"] * 5}), if_exists="append"
        )
    answer, of_zones = _both(connection, f"SELECT {CALLS}, count(b) FROM t")
    assert of_zones
    assert answer.to_pylist()[0]["max(a)"] == 24


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT min(a) FROM t WHERE a > 1",
        "SELECT min(a + 1) FROM t",
        "SELECT count(DISTINCT a) FROM t",
        "SELECT max(a) FILTER (a < 3) FROM t",
        "SELECT min(a) FROM t GROUP BY a",
        "SELECT sum(a), min(a) FROM t",
        "SELECT count(*) FROM t TABLESAMPLE 2 ROWS",
        "SELECT min(a) FROM (FROM t LIMIT 2)",
        "SELECT min(t.a) FROM t JOIN t AS u ON t.a = u.a",
        "SELECT max(b) FROM t",
    ],
)
def test_what_zone_maps_do_not_know(connection: Connection, sql: str) -> None:
    connection.load("t", pa.table({"a": [4, 1, 3, 2], "b": ["x", "y" * 40, "z", None]}))
    assert not _both(connection, sql)[1]


def test_a_column_that_came_later(connection: Connection) -> None:
    connection.load("t", pa.table({"a": [4, 1]}))
    connection.sql("ALTER TABLE t ADD COLUMN b BIGINT DEFAULT 7")
    connection.sql("INSERT INTO t VALUES (9, 8)")
    answer, _ = _both(connection, "SELECT max(b), count(b), min(b) FROM t")
    assert list(answer.to_pylist()[0].values()) == [8, 3, 7]
