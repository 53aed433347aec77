"""Calls over windows whose partitions do not fit in memory: answers as DuckDB's, held within the limit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.connection.connection import Connection
from bamquery.engine.device import Device
from bamquery.engine.operators.scan import chunks as scan_chunks
from bamquery.engine.operators.window import large_partition
from bamquery.errors import ExecutionError, MemoryLimitError, UnsupportedError
from tests.values import plain, same

ROWS = 1500
LIMIT = 90_000


def _table() -> pa.Table:
    random = np.random.default_rng(5)
    doubles = random.integers(-40, 40, ROWS) / 8
    few = random.integers(0, 3, ROWS)
    many = random.integers(0, 900, ROWS)
    return pa.table(
        {
            "row": pa.array(random.permutation(ROWS)),
            "few": pa.array(few, mask=few == 2),
            "many": pa.array(many, mask=many % 9 == 0),
            "x": pa.array(np.where(doubles == 1.0, np.nan, doubles), mask=doubles == 2.0),
            "i": pa.array(random.integers(-(2**62), 2**62, ROWS), mask=many % 7 == 0),
            "text": pa.array([f"text {value}" for value in many], mask=many % 31 == 0),
            "cents": pa.array(random.integers(-(10**6), 10**6, ROWS)).cast(pa.decimal128(19, 0)),
        }
    )


TABLE = _table()
AT_ONCE = [  # none of these has to see rows twice
    "row_number() OVER (ORDER BY row)",
    "row_number() OVER (PARTITION BY few ORDER BY row)",
    "rank() OVER (ORDER BY few)",
    "rank() OVER (ORDER BY many DESC NULLS FIRST)",
    "dense_rank() OVER (ORDER BY few)",
    "dense_rank() OVER (ORDER BY few, many)",
    "dense_rank() OVER (PARTITION BY few ORDER BY many)",
    "sum(i) OVER (ORDER BY row)",
    "sum(cents) OVER (PARTITION BY few ORDER BY row)",
    "sum(x) OVER (ORDER BY row)",
    "avg(i) OVER (ORDER BY row)",
    "stddev_samp(x) FILTER (few = 1) OVER (ORDER BY row)",
    "corr(x, row) OVER (ORDER BY row)",
    "bool_or(x > 4) OVER (ORDER BY row)",
    "arg_max(text, many) OVER (ORDER BY row)",
    "lag(text) OVER (ORDER BY row)",
    "lag(row, 40) OVER (PARTITION BY few ORDER BY row)",
    "lead(x, 3, -1.5) OVER (ORDER BY row)",
    "lead(row, -2, many) OVER (ORDER BY row)",
    "lag(row, 0) OVER (ORDER BY row)",
    "avg(x) OVER (ORDER BY row ROWS BETWEEN 9 PRECEDING AND CURRENT ROW)",
    "median(x) OVER (ORDER BY row ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING)",
    "count(DISTINCT few) OVER (ORDER BY row ROWS BETWEEN CURRENT ROW AND 30 FOLLOWING)",
    "nth_value(text, 2) OVER (ORDER BY row ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)",
    "sum(row) OVER (ORDER BY row ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING EXCLUDE GROUP)",
    "max(row) OVER (ORDER BY row ROWS BETWEEN UNBOUNDED PRECEDING AND 5 PRECEDING)",
    """stddev_samp(x) FILTER (few = 1) OVER (ORDER BY row
        ROWS BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING EXCLUDE CURRENT ROW)""",
    "sum(x) OVER (ORDER BY row ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES)",
    "sum(i) OVER (ORDER BY row RANGE BETWEEN 12 PRECEDING AND CURRENT ROW)",
    "avg(x) OVER (PARTITION BY few ORDER BY row DESC RANGE BETWEEN 30 PRECEDING AND 12 FOLLOWING)",
    """count(DISTINCT few) OVER (ORDER BY DATE '2024-01-31' + (row // 4)::INTEGER
        RANGE BETWEEN INTERVAL 3 DAYS PRECEDING AND INTERVAL 1 DAY PRECEDING)""",
    """max(x) OVER (ORDER BY TIMESTAMP '2024-01-31' + INTERVAL (row * 7) HOURS
        RANGE BETWEEN INTERVAL 1 DAY FOLLOWING AND INTERVAL 2 DAYS FOLLOWING EXCLUDE TIES)""",
    "sum(i) OVER (ORDER BY row / 8 NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND 1.5 FOLLOWING)",
    "max(row) OVER (ORDER BY row // 4 GROUPS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP)",
    """sum(cents) OVER (ORDER BY CASE WHEN row % 100 > 2 THEN row // 3 END NULLS FIRST
        RANGE BETWEEN 2 PRECEDING AND 2 FOLLOWING)""",
    """nth_value(row, 3) OVER (ORDER BY CASE WHEN row % 100 > 2 THEN row END DESC
        GROUPS BETWEEN 3 PRECEDING AND 1 PRECEDING)""",
    "first_value(text) OVER (ORDER BY row)",
    "first_value(x IGNORE NULLS) OVER (PARTITION BY few ORDER BY row)",
    "last_value(many IGNORE NULLS) OVER (ORDER BY row)",
    "last_value(text) OVER (ORDER BY row)",
    "lag(x IGNORE NULLS) OVER (ORDER BY row)",
    "lead(many, -1 IGNORE NULLS) OVER (PARTITION BY few ORDER BY row)",
    "max(DISTINCT many) OVER (ORDER BY row)",
]
BY_FILE = [
    "percent_rank() OVER (ORDER BY many)",
    "cume_dist() OVER (ORDER BY few)",
    "cume_dist() OVER (PARTITION BY few ORDER BY many)",
    "ntile(7) OVER (ORDER BY row)",
    "ntile(CASE WHEN many > 3 THEN many END) OVER (PARTITION BY few ORDER BY row)",
    "sum(cents) OVER ()",
    "avg(x) OVER (PARTITION BY few)",
    "count(*) OVER (PARTITION BY few)",
    "max(text) OVER (ORDER BY row ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    "x / sum(i) OVER ()",
    "max(text) OVER (ORDER BY few)",
    "sum(i) OVER (ORDER BY few)",
    "arg_min(row, row) OVER (ORDER BY few DESC)",
    "sum(row) FILTER (x > 0) OVER (ORDER BY coalesce(few * 0, many))",
    "min(x) OVER (PARTITION BY few % 2 ORDER BY few RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "count(*) OVER (ORDER BY few RANGE BETWEEN CURRENT ROW AND CURRENT ROW)",
    "sum(x) OVER (ORDER BY coalesce(few * 0, many) GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "sum(x) OVER (ORDER BY row // 4 RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE GROUP)",
    "sum(cents) OVER (ORDER BY row ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    """sum(row) OVER (ORDER BY row
        ROWS BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW)""",
    "avg(x) OVER (ORDER BY row ROWS BETWEEN 60 PRECEDING AND UNBOUNDED FOLLOWING)",
    "sum(x) OVER (ORDER BY row ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW)",
    "avg(i) OVER (ORDER BY row // 3 RANGE BETWEEN 4 PRECEDING AND UNBOUNDED FOLLOWING)",
    "min(x) OVER (PARTITION BY few ORDER BY row GROUPS BETWEEN 3 FOLLOWING AND UNBOUNDED FOLLOWING)",
    "last_value(text) OVER (ORDER BY row ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "lead(CASE WHEN row % 90 = 5 THEN row END IGNORE NULLS) OVER (ORDER BY row)",
    "first_value(row) OVER (ORDER BY row ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
]
QUERIES = {
    "several methods": """SELECT row, row_number() OVER w, lag(x) OVER w, sum(i) OVER w, sum(i) OVER few,
        cume_dist() OVER w, avg(x) OVER (w ROWS BETWEEN 9 PRECEDING AND 2 FOLLOWING), ntile(4) OVER w,
        count(*) OVER few, rank() OVER w, last_value(text) OVER w, max(x) OVER (w GROUPS UNBOUNDED PRECEDING)
        FROM t WINDOW w AS (PARTITION BY few ORDER BY row), few AS (PARTITION BY few)""",
    "partitions of all sizes": """SELECT row, sum(i) OVER w, lag(text) OVER w, count(*) OVER p
        FROM t WINDOW p AS (PARTITION BY CASE WHEN many < 300 THEN many WHEN many < 600 THEN 700 END),
        w AS (p ORDER BY row)""",
    "qualify": "SELECT row FROM t QUALIFY row_number() OVER (PARTITION BY few ORDER BY row DESC) <= 5",
    "order": "SELECT row, sum(cents) OVER (ORDER BY row) AS s FROM t ORDER BY s, row",
    "over groups": "SELECT many, sum(sum(i)) OVER (ORDER BY many) FROM t GROUP BY many",
    "no columns": "SELECT count(*) FROM (SELECT row_number() OVER () AS n FROM t) WHERE n % 2 = 0",
    "constants": "SELECT count(c), min(c) FROM (SELECT count(*) OVER () AS c FROM t)",
}


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.register("t", TABLE)
        yield connection


@pytest.fixture
def connection(
    tmp_path: Path, device_name: str, device: Device[Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Connection]:
    for limit in ("FIRST_VECTORS", "CHUNK_VECTORS"):
        monkeypatch.setattr(scan_chunks, limit, 1)
    with bamquery.connect(tmp_path / "db", device=device_name, memory_limit=f"{LIMIT} B", threads=2) as found:
        found.load("t", TABLE)
        yield found


def _asked(connection: Connection, oracle: duckdb.DuckDBPyConnection, sql: str, limit: int = LIMIT) -> int:
    """Compare answers; how many portions there were."""
    relation = connection.sql(sql)
    try:
        ours = relation.to_arrow()
    except UnsupportedError as reason:
        pytest.skip(str(reason))
    theirs = oracle.sql(sql).to_arrow_table()
    mine, others = (list(zip(*map(plain, table.columns), strict=True)) for table in (ours, theirs))
    if "ORDER BY s" not in sql:
        mine.sort(key=repr)
        others.sort(key=repr)
    for one, other in zip(mine, others, strict=True):
        assert all(same(a, b, 1e-9) for a, b in zip(one, other, strict=True)), (one, other)
    assert relation.profile.peak_memory <= limit
    return sum(int(part.details.get("portions", 0)) for part in relation.profile.root.walk())


@pytest.mark.parametrize(
    "call",
    [
        call if number % 5 == 0 or "x IGNORE NULLS" in call else pytest.param(call, marks=pytest.mark.slow)
        for number, call in enumerate([*AT_ONCE, *BY_FILE])
    ],
)
def test_calls(connection: Connection, oracle: duckdb.DuckDBPyConnection, call: str, tmp_path: Path) -> None:
    before = sorted((tmp_path / "db").rglob("*"))
    assert _asked(connection, oracle, f"SELECT row, text, {call} AS v FROM t") >= 20
    assert sorted((tmp_path / "db").rglob("*")) == before


@pytest.mark.parametrize("call", [AT_ONCE[0], BY_FILE[0]])
def test_what_goes_through_a_file(connection: Connection, call: str) -> None:
    relation = connection.sql(f"SELECT row, {call} FROM t")
    relation.to_arrow()
    (window,) = [part for part in relation.profile.root.walk() if part.name == "Window"]
    assert ("spilled" in window.details) == (call in BY_FILE)


@pytest.mark.parametrize("name", QUERIES)
def test_queries(
    connection: Connection, oracle: duckdb.DuckDBPyConnection, name: str, device_name: str
) -> None:
    limit, least = 2 * LIMIT, 5  # several calls make rows large
    if device_name != "cpu" and name == "partitions of all sizes":
        limit, least = 3 * LIMIT, 2  # on a GPU frames weigh more
    connection.sql(f"SET memory_limit = '{limit} B'")
    assert _asked(connection, oracle, QUERIES[name], limit) >= least


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("median(x) OVER (ORDER BY row)", r"quantile_cont\(\) over a window needs .* SET memory_limit"),
        ("count(DISTINCT many) OVER ()", r"count\(\) over a window needs .* memory_limit is"),
        ("nth_value(x, 3) OVER (ORDER BY row)", r"nth_value\(\) over a window needs"),
        ("sum(x) OVER (ORDER BY row ROWS many PRECEDING)", r"sum\(\) over a window needs"),
        ("lag(x, 2 IGNORE NULLS) OVER (ORDER BY row)", r"lag\(\) over a window needs"),
        ("lag(x, 1, 0 IGNORE NULLS) OVER (ORDER BY row)", r"lag\(\) over a window needs"),
        ("lag(text, 2000) OVER (ORDER BY row)", r"lag\(\) over a window needs .* memory_limit is"),
        ("sum(x) OVER (ORDER BY row RANGE few PRECEDING)", r"sum\(\) over a window needs"),
        ("sum(x) OVER (ORDER BY row RANGE 1000 PRECEDING)", r"sum\(\) over a window needs"),
        ("sum(x) OVER (ORDER BY few RANGE 1 PRECEDING)", r"sum\(\) over such a window .* SET memory_limit"),
        (
            "sum(x) OVER (ORDER BY few RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES)",
            r"sum\(\) over such a window .* SET memory_limit",
        ),
    ],
)
def test_what_needs_the_partition_in_memory(connection: Connection, call: str, words: str) -> None:
    with pytest.raises(MemoryLimitError, match=words):
        connection.sql(f"SELECT row, text, sum(i) OVER (ORDER BY row), {call} FROM t").to_arrow()


def test_errors_of_values(connection: Connection) -> None:
    with pytest.raises(ExecutionError, match="above zero"):
        connection.sql("SELECT ntile(many - 800) OVER (ORDER BY row) FROM t").to_arrow()
    with pytest.raises(ExecutionError, match="DECIMAL"):
        connection.sql("SELECT sum(power(10, 37)::DECIMAL(38, 0)) OVER (ORDER BY row) FROM t").to_arrow()


def test_all_rows_have_one_value(connection: Connection) -> None:
    """Sums of doubles depend on the order of additions: of one frame there must be one sum."""
    for window in ("", "ORDER BY few * 0", "PARTITION BY few * 0"):
        call = f"sum(x / 3 + 1e-7 * row) FILTER (x < 9) OVER ({window})"
        sql = f"SELECT count(DISTINCT s) FROM (SELECT few, {call} AS s FROM t) WHERE few IS NOT NULL"
        assert connection.sql(sql).fetchall() == [(1,)]


EDGES = (
    *("UNBOUNDED PRECEDING", "3 PRECEDING", "1 PRECEDING"),
    *("CURRENT ROW", "2 FOLLOWING", "UNBOUNDED FOLLOWING"),
)
FUNCTIONS = (
    *("count(*)", "sum(i)", "sum(cents)", "avg(x)", "min(x)", "max(text)", "stddev_pop(x)"),
    *("sum(i) FILTER (few = 1)", "bool_and(x > 0)"),
)
BY_ORDER = ("first_value(row)", "last_value(x IGNORE NULLS)", "arg_min(row, few)")
PLACES = (
    *("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(5)"),
    *("lag(x, 2)", "lead(row, 3, -1)"),
)


def _some_calls(draw: random.Random) -> Iterator[str]:
    """Calls of all kinds over one partitioning; answers do not depend on the order of peers."""
    by = draw.choice(["", "PARTITION BY few ", "PARTITION BY many % 2 "])
    for _ in range(draw.randint(1, 4)):
        if draw.random() < 0.4:
            yield f"{draw.choice(PLACES)} OVER ({by}ORDER BY row)"
            continue
        start, end = sorted(draw.sample(range(len(EDGES)), 2))
        unit = draw.choice(["ROWS", "RANGE", "GROUPS"])
        function = draw.choice(FUNCTIONS if unit != "ROWS" else FUNCTIONS + BY_ORDER)
        orders = ["row"] if unit == "ROWS" else ["row", "row // 4"]
        if unit != "ROWS" and not any(EDGES[edge][0].isdigit() for edge in (start, end)):
            orders += ["row // 200", "few"]
        exclude = draw.choice(["", "", " EXCLUDE CURRENT ROW"]) if unit == "ROWS" else ""
        frame = f"{unit} BETWEEN {EDGES[start]} AND {EDGES[end]}{exclude}"
        yield f"{function} OVER ({by}ORDER BY {draw.choice(orders)} {frame})"


@pytest.mark.parametrize(
    "seed", [seed if seed < 4 else pytest.param(seed, marks=pytest.mark.slow) for seed in range(16)]
)
def test_any_limit_gives_the_same(connection: Connection, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    calls = ", ".join(f"{call} AS c{i}" for i, call in enumerate(_some_calls(draw)))
    sql = f"SELECT row, {calls} FROM t"
    monkeypatch.setattr(large_partition, "_BLOCK_ROWS", draw.choice([5, 40, 1 << 19]))
    limit = draw.randint(100_000, 250_000)
    made: list[int] = []
    make_portion = large_partition.LargePartition._portion

    def count_portion(partition: Any, *arguments: Any) -> Any:
        made.append(1)
        return make_portion(partition, *arguments)

    monkeypatch.setattr(large_partition.LargePartition, "_portion", count_portion)
    connection.sql(f"SET memory_limit = '{limit} B'")
    relation = connection.sql(sql)
    given = relation.to_arrow()
    assert relation.profile.peak_memory <= limit
    assert sum(part.details.get("portions", 0) for part in relation.profile.root.walk()) == len(made) > 5
    connection.sql("SET memory_limit = '1 GB'")
    whole = connection.sql(sql)
    expected = whole.to_arrow()
    assert not any(part.details.get("portions") for part in whole.profile.root.walk())
    mine, others = (sorted(zip(*map(plain, t.columns), strict=True)) for t in (given, expected))
    for one, other in zip(mine, others, strict=True):
        assert all(same(a, b, 1e-9) for a, b in zip(one, other, strict=True)), (one, other)


@pytest.mark.parametrize("limit", [30, 48, 64])
def test_small_partitions_before_a_large_one(tmp_path: Path, limit: int) -> None:
    """The rows held by then are of several partitions, and the large one's are more than a block of them."""
    with bamquery.connect(tmp_path / "db", device="cpu", threads=1, memory_limit=f"{limit}MB") as own:
        own.sql(
            "CREATE TABLE t AS SELECT i AS id, (i * 7919) % 2001 AS v, "
            "CASE WHEN i % 5 < 3 THEN 7 ELSE i % 50 END AS z FROM range(300000) AS r(i)"
        )
        query = "SELECT count(*), sum(x) FROM (SELECT lag(v) OVER (PARTITION BY z ORDER BY id) AS x FROM t)"
        assert own.sql(query).fetchall() == [(300_000, 299_983_122)]
