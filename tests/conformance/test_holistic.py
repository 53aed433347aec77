"""Aggregates that need all values of a group, where these are more than memory may hold: DuckDB's answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.connection.connection import Connection
from bamquery.data_types.names import type_name
from bamquery.engine.device import Device
from bamquery.engine.operators.aggregate import counted_values as gathered_values
from bamquery.engine.operators.base import frame_sizing as framing
from bamquery.engine.operators.scan import chunks as scan_chunks
from bamquery.errors import UnsupportedError
from tests.values import plain, same

ROWS = 12_000
_HERE = {"HUGEINT": "DECIMAL(38,0)"}
LIMIT = 150_000
"""Of which two thirds are for what operators hold: the values of a column alone are more."""


def _table() -> pa.Table:
    """Half of the rows are of one key, the others of 20 or of several thousand ones."""
    random = np.random.default_rng(11)
    wide = random.integers(0, 5000, ROWS)
    few = random.integers(0, 20, ROWS)
    half = random.random(ROWS) < 0.5
    doubles = random.integers(-10_000, 10_000, ROWS) / 8
    doubles[random.random(ROWS) < 0.05] = np.nan
    doubles[random.random(ROWS) < 0.01] = np.inf
    seconds = random.integers(0, 10**9, ROWS)
    cents = random.integers(-(10**9), 10**9, ROWS)
    return pa.table(
        {
            "row": pa.array(np.arange(ROWS)),
            "wide": pa.array(wide),
            "few": pa.array(np.where(half, 0, few), mask=few == 3),
            "many": pa.array(np.where(half, 0, wide)),
            "word": pa.array([f"word {value}" for value in few]).dictionary_encode(),
            "i": pa.array(random.integers(-(10**6), 10**6, ROWS), mask=wide % 13 == 0),
            "x": pa.array(doubles, mask=wide % 11 == 0),
            "f": pa.array((wide / 4).astype(np.float32)),
            "m": pa.array(cents).cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)),
            "small": pa.array(cents // 1000).cast(pa.decimal128(19, 0)).cast(pa.decimal128(12, 0)),
            "d": pa.array(seconds.astype("datetime64[s]")).cast(pa.date32()),
            "ts": pa.array((seconds * 10**6).astype("datetime64[us]")),
            "s": pa.array([f"text {value}" for value in wide], mask=wide % 7 == 0),
            "b": pa.array(wide % 3 == 0),
        }
    )


TABLE = _table()
QUERIES = {
    "the median of all rows": "SELECT median(row), median(x), median(f), median(i) FROM t",
    "of decimals": """SELECT median(m), quantile_cont(small, 0.3), quantile_disc(m, 0.9), mad(m)
        FROM t""",
    "of dates and times": """SELECT median(d), median(ts), quantile_disc(ts, 0.2), quantile_cont(ts, 0.7)
        FROM t""",
    "of texts and truth values": "SELECT median(s), quantile_disc(s, 0.25), mode(b), median(b) FROM t",
    "several quantiles": """SELECT quantile_cont(x, 0.1), quantile_cont(x, -0.1), quantile_cont(x, 1),
        quantile_disc(x, 0), quantile_disc(x, -0.35), quantile_disc(x, 0.35::DOUBLE), quantile(x, 0.999)
        FROM t WHERE NOT isnan(x)""",
    "quantiles with NaN": "SELECT quantile_disc(x, 0.95), quantile_disc(x, -0.01), mode(x) FROM t",
    "distances from a middle that is cut off": """SELECT mad(row),
        mad((CASE row % 4 WHEN 0 THEN 0 WHEN 1 THEN 4 WHEN 2 THEN 5 ELSE 20 END)::DECIMAL(30, 0)) FROM t""",
    "distances": "SELECT mad(f), mad(i), mad(x) FROM t WHERE x > -9999 AND NOT isinf(x)",
    "frequencies": "SELECT mode(wide), mode(s), mode(x), entropy(wide), entropy(s), entropy(x) FROM t",
    "frequencies in an order": """SELECT mode(wide ORDER BY x DESC NULLS FIRST, row),
        mode(s ORDER BY wide, row),
        mode(b ORDER BY row DESC), mode(s ORDER BY row DESC) FROM t""",
    "groups of mixed sizes": """SELECT many, median(i), mode(s), quantile_disc(x, 0.3), count(*), sum(m)
        FROM t WHERE row % 3 = 0 GROUP BY many""",
    "few groups": """SELECT few, median(x), entropy(wide), mode(d), max(s), avg(i)
        FROM t GROUP BY few""",
    "several keys": "SELECT few, word, b, median(row) FROM t GROUP BY ALL",
    "a key of texts": """SELECT word, quantile_cont(i, 0.2), quantile_disc(s, 0.8), first(row)
        FROM t GROUP BY word""",
    "a key of doubles": "SELECT CASE WHEN row > 6000 THEN x END AS k, median(i), mode(s) FROM t GROUP BY k",
    "filters": """SELECT b, median(i) FILTER (row > 4500), median(i), mode(i) FILTER (i < 0), count(i),
        mad(f) FILTER (few = 99), entropy(f) FILTER (few = 99) FROM t GROUP BY b""",
    "nothing but nulls": "SELECT b, median(nullif(i, i)), mode(nullif(s, s)), median(i) FROM t GROUP BY b",
    "different values": """SELECT median(DISTINCT i), median(i), mode(DISTINCT row - row), count(DISTINCT s),
        sum(DISTINCT wide), avg(DISTINCT m), quantile_disc(DISTINCT x, 0.4), count(*) FROM t""",
    "different values of groups": """SELECT b, median(DISTINCT i), count(DISTINCT x), sum(DISTINCT m),
        mad(DISTINCT f)
        FROM t GROUP BY b""",
    "grouping sets": """SELECT b, few, median(i), GROUPING(b, few) AS g
        FROM t WHERE row < 7500 GROUP BY GROUPING SETS ((b), (few), ())""",
    "texts beside": """SELECT b, median(i), string_agg(s, '-' ORDER BY row) FILTER (row % 1000 = 0), mode(s)
        FROM t GROUP BY b""",
    "over groups": """SELECT median(n), mode(n ORDER BY k), entropy(n), mad(n) FROM
        (SELECT row % 4500 AS k, sum(i) + 9 AS n FROM t GROUP BY k)""",
}
LIMITS = {"different values": 2 * LIMIT, "different values of groups": 2 * LIMIT}
"""Of queries that hold much at once: a part of the limit is certain for each, here too little to sort."""
EXTREMES = {
    "of all rows": """SELECT arg_min(s, f ORDER BY row DESC), arg_max(x, f ORDER BY i), arg_max(s,
        x ORDER BY row),
        arg_min_null(x, wide ORDER BY row DESC), arg_max_null(s, f ORDER BY row),
        arg_min(row, i ORDER BY row) FILTER (wide > 4000 AND wide / (wide - 4000) > 2) FROM t""",
    "of groups": """SELECT few, arg_min(s, b ORDER BY x DESC, row), arg_max_null(i, b ORDER BY row DESC)
        FROM t GROUP BY few""",
    "of nothing": "SELECT arg_min(s, f ORDER BY row) FROM t WHERE row < 0",
}


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")  # mode takes the first of equals
        connection.register("t", TABLE)
        yield connection


@pytest.fixture
def connection(
    tmp_path: Path, device: Device[Any], device_name: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Connection]:
    monkeypatch.setattr(framing, "GATHERED_ROWS", 600 // device.task_size)
    monkeypatch.setattr(gathered_values, "_LEAST_ROWS", 500)
    for limit in ("FIRST_VECTORS", "CHUNK_VECTORS"):
        monkeypatch.setattr(scan_chunks, limit, 1)
    with bamquery.connect(tmp_path / "db", device=device_name, memory_limit=f"{LIMIT} B", threads=2) as found:
        found.load("t", TABLE)
        yield found


def _rows(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(zip(*(plain(column) for column in table.columns), strict=True), key=repr)


def _check(connection: Connection, oracle: duckdb.DuckDBPyConnection, sql: str, limit: int = LIMIT) -> int:
    """DuckDB's answer, within the limit; gives bytes that were written to files meanwhile."""
    relation = connection.sql(sql)
    try:
        ours = relation.to_arrow()
    except UnsupportedError as reason:
        pytest.skip(str(reason))
    answer = oracle.sql(sql)
    theirs = answer.to_arrow_table()
    assert [type_name(kind) for kind in ours.schema.types] == [
        _HERE.get(t, t) for t in map(str, answer.types)
    ]
    assert ours.num_rows == theirs.num_rows
    for row, other in zip(_rows(ours), _rows(theirs), strict=True):
        assert all(same(a, b, 1e-9) for a, b in zip(row, other, strict=True)), (row, other)
    assert relation.profile.peak_memory <= limit
    return relation.profile.spilled


QUICK = (
    "the median of all rows",
    "distances",
    "frequencies",
    "groups of mixed sizes",
    "filters",
)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in QUERIES]
)
def test_answers(
    connection: Connection, oracle: duckdb.DuckDBPyConnection, name: str, tmp_path: Path
) -> None:
    if name in LIMITS:
        connection.sql(f"SET memory_limit = '{LIMITS[name]} B'")
    before = sorted((tmp_path / "db").rglob("*"))
    assert _check(connection, oracle, QUERIES[name], LIMITS.get(name, LIMIT)) > 0
    assert sorted((tmp_path / "db").rglob("*")) == before


@pytest.mark.parametrize("name", EXTREMES)
def test_one_row_by_an_order_is_not_gathered_for(
    connection: Connection, oracle: duckdb.DuckDBPyConnection, name: str
) -> None:
    assert _check(connection, oracle, EXTREMES[name]) == 0
