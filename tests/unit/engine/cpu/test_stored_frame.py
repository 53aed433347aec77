"""Frames with packed columns: answers are those of decoded ones, whatever is done with their rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.connection.connection import Connection
from bamquery.engine.cpu.pipeline import native_program
from bamquery.statement_context.thread_budget import ThreadBudget
from bamquery.storage.encodings.packed.selection import PackedSelection

ROWS = 300_000
"""Of which the last vector has few."""

QUERIES = (
    "SELECT sum(i), avg(i), min(i), max(i), count(i), count(*) FROM t",
    "SELECT sum(d), avg(d), min(d), max(d), sum(f), min(f), max(f), min(day), max(day) FROM t",
    "SELECT b, sum(i + 1), sum(d * 2), max(f / 3) FROM t GROUP BY b ORDER BY b",
    "SELECT s, b, sum(i) FILTER (b), count(d), avg(f) FROM t GROUP BY s, b ORDER BY s, b",
    "SELECT year(day) AS y, count(*), sum(d) FROM t GROUP BY y ORDER BY y",
    "SELECT s, sum(i * 3) FROM t WHERE i > 10 GROUP BY s ORDER BY s",
    "SELECT s, sum(d), count(b) FROM t WHERE row_number BETWEEN 1000 AND 290_000 GROUP BY s ORDER BY s",
    "SELECT s, sum(d), sum(f) FROM t WHERE i + row_number < 200_000 GROUP BY s ORDER BY s",
    "SELECT s, sum(d), sum(f) FROM t WHERE i < f AND d > i GROUP BY s ORDER BY s",
    "SELECT s, sum(d) FROM t WHERE row_number % 1009 = 5 GROUP BY s ORDER BY s",
    "SELECT count(*), sum(t.d) FROM t JOIN (SELECT DISTINCT i FROM t WHERE i > 450) k ON t.i = k.i",
    "SELECT k.j, count(*), sum(t.d) FROM t LEFT JOIN (SELECT DISTINCT i, i // 9 AS j FROM t WHERE i > 40) k "
    "ON t.i = k.i WHERE row_number < 40_960 OR row_number >= 204_800 GROUP BY k.j ORDER BY k.j",
    "SELECT count(*), sum(t.d) FROM t JOIN (SELECT i, avg(d) AS mean FROM t GROUP BY i) k ON t.i = k.i "
    "WHERE t.d > 1.5 * k.mean AND (row_number < 40_960 OR row_number >= 204_800)",
    "SELECT s, count(*) FILTER (i IN (SELECT i FROM t WHERE row_number < 99)) FROM t GROUP BY s ORDER BY s",
    "SELECT u.s, sum(t.d), sum(u.f) FROM t JOIN t u ON t.row_number = u.row_number + 1 GROUP BY 1 ORDER BY 1",
    "SELECT i, sum(d) FROM t GROUP BY i ORDER BY 2 DESC, 1 LIMIT 9",
    "SELECT sum(CASE WHEN b THEN d ELSE 0 END) / sum(d), sum(coalesce(i, 7)) FROM t",
    "SELECT count(*) FROM t WHERE b IS NULL OR NOT b",
    "SELECT s, median(f), string_agg(s, '') FILTER (row_number < 5), sum(i) FROM t GROUP BY s ORDER BY s",
)


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A packed table, loaded twice, so that it has two fragments; some values are null."""
    path: Path = tmp_path_factory.mktemp("stored") / "t.bq"
    random = np.random.default_rng(7)
    missing = random.random(ROWS) < 0.1
    hundredths = pa.array(random.integers(0, 10**6, ROWS)).cast(pa.decimal128(19, 0))
    table = pa.table(
        {
            "row_number": np.arange(ROWS),
            "i": pa.array(random.integers(-500, 500, ROWS), mask=missing),
            "d": pa.Array.from_buffers(pa.decimal128(15, 2), ROWS, hundredths.buffers()),
            "f": pa.array(random.integers(0, 9000, ROWS) / 100),
            "b": pa.array(random.random(ROWS) < 0.5, mask=missing[::-1]),
            "s": pa.array(random.choice(["alpha", "beta", "gamma"], ROWS), pa.large_string(), mask=missing),
            "day": pa.array(random.integers(-9000, 20_000, ROWS).astype(np.int32)).cast(pa.date32()),
        }
    )
    with bamquery.connect(path) as con:
        con.sql("SET device = 'cpu'; SET threads = 2")
        con.load("t", table.slice(0, 170_000))
        con.load("t", table.slice(170_000), if_exists="append")
        yield con


SHARED = (
    *QUERIES,
    "SELECT s || 'x' || i % 2000 AS k, count(*), sum(d) FROM t GROUP BY k ORDER BY k NULLS LAST LIMIT 50",
    "SELECT count(*) FROM t WHERE s || row_number LIKE '%a%9_'",
    "SELECT row_number, i * 3 + 1 AS v FROM t WHERE i * i > f * 900 ORDER BY v, row_number LIMIT 20",
    "SELECT count(*), sum(t.d), min(k.b) FROM t JOIN t k ON t.row_number = k.row_number * 3",
    "SELECT count(*), sum(t.i) FROM t JOIN (SELECT i FROM t WHERE row_number < 5000) k ON t.i = k.i",
    "SELECT count(*) FROM t WHERE row_number IN (SELECT row_number * 7 FROM t WHERE b)",
)
"""Of which many rows come at once."""


@pytest.mark.parametrize("query", SHARED)
def test_calls_that_threads_share(
    connection: Connection, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same chunks, each of whose calls is one thread's, or five threads'."""
    found = []
    connection.sql("SET threads = 1; SET strategy = 'auto'; SET programs = on")
    for threads in (1, 5):
        monkeypatch.setattr(
            "bamquery.engine.execution.context.ThreadBudget", lambda _, threads=threads: ThreadBudget(threads)
        )
        found.append(connection.sql(query).to_arrow().to_pylist())
    connection.sql("SET threads = 2")
    assert found[0] == found[1]


@pytest.mark.parametrize("strategy", ["auto", "stream", "vectors"])
@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_the_operators(connection: Connection, query: str, strategy: str) -> None:
    """With programs and without them."""
    connection.sql(f"SET strategy = '{strategy}'")
    found = []
    for programs in ("on", "off"):
        connection.sql(f"SET programs = {programs}")
        found.append(connection.sql(query).to_arrow().to_pylist())
    assert found[0] == found[1]


def test_strings_that_stay_encoded_count_as_needed(connection: Connection) -> None:
    """As many bytes as where they are given out, though groups take them as places in a dictionary.

    Each chunk rounds, and the two are cut into other ones.
    """
    connection.sql("SET programs = on; SET strategy = 'auto'")
    needed = []
    for query in ("SELECT s FROM t WHERE i > 0", "SELECT s, count(*) FROM t WHERE i > 0 GROUP BY s"):
        answer = connection.sql(query)
        answer.to_arrow()
        needed.append(answer.profile.io.bytes_needed)
    assert needed[0] == pytest.approx(needed[1], abs=16)
    assert needed[0] > 8 * ROWS


def test_values_that_begin_anywhere_in_memory_are_computed() -> None:
    """Arrow allows it in what others made."""
    memory = pa.py_buffer(b"x" + np.arange(1000).tobytes()).slice(1)
    numbers = pa.Array.from_buffers(pa.int64(), 1000, [None, memory])
    with bamquery.connect(device="cpu") as con:
        con.register("u", pa.table({"i": numbers}))
        assert con.sql("SELECT sum(i * 2), max(i) FROM u").fetchall() == [(999_000, 999)]
        assert con.sql("SELECT i + 1 FROM u WHERE i > 997").fetchall() == [(999,), (1000,)]


def test_columns_reach_programs_packed(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a profile says of aggregates that a program computes them."""
    given: list[int] = []
    packed_column = native_program._packed_column

    def counted(found: PackedSelection) -> object:
        given.append(len(found))
        return packed_column(found)

    monkeypatch.setattr(native_program, "_packed_column", counted)
    connection.sql("SET programs = on; SET strategy = 'auto'")
    answer = connection.sql("SELECT sum(i), sum(d * 2), median(f) FROM t")
    answer.to_arrow()
    assert given  # small chunks are put together, and those of two fragments, which decodes them
    assert "program: 2 of 3 aggregates" in answer.explain(analyze=True)
    connection.sql("SET programs = off")
    assert "program" not in connection.sql("SELECT sum(i) FROM t").explain(analyze=True)
