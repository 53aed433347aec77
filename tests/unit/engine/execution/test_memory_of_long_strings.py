"""Most memory that Arrow gives out, for queries that would make many times memory_limit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import bamquery

LIMIT = 32 << 20
OVER = 1.25
LONG = "repeat('x', 250000)"

CHILD = """
import json, sys
import pyarrow as pa
import bamquery

path, limit, queries = sys.argv[1], sys.argv[2], json.load(sys.stdin)
with bamquery.connect(path, threads=2, memory_limit=limit) as connection:
    for query in queries:
        try:
            found = connection.execute(query).fetchone()
        except bamquery.BamQueryError as error:
            found = f"{type(error).__name__}: {error}"
        print(json.dumps([found, pa.default_memory_pool().max_memory()]))
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("texts") / "db"
    with bamquery.connect(path) as connection:
        for name, column in (("a", "x"), ("b", "y")):
            connection.execute(
                f"CREATE TABLE {name} AS SELECT i, i % 3 AS g, "
                f"repeat(md5('{name}' || i), 20 + i % 160) AS {column} FROM range(240) r(i)"
            )
        connection.execute("CREATE TABLE few AS SELECT i FROM range(360) r(i)")
        connection.execute("CREATE TABLE many AS SELECT i FROM range(6000) r(i)")
    return path


def answers(database: Path, *queries: str) -> list[object]:
    """Each query's first row, or its error; none has taken more than it may."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(database), f"{LIMIT}B"],
        input=json.dumps(queries),
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for query, (_, peak) in zip(queries, lines, strict=True):
        assert peak < OVER * LIMIT, f"{peak / LIMIT:.2f} times the limit: {query}"
    return [tuple(found) if isinstance(found, list) else found for found, _ in lines]


JOINS = {
    "cross": ("FROM a, b", 57_600),
    "condition": ("FROM a JOIN b ON a.g = b.g AND x <> y", 19_200),
    "many partners": ("FROM a JOIN b ON a.g = b.g", 19_200),
    "left": ("FROM a LEFT JOIN b ON a.g = b.g AND x <> y", 19_200),
    "right": ("FROM a RIGHT JOIN b ON a.g = b.g AND x <> y", 19_200),
    "full": ("FROM a FULL JOIN b ON a.g <= b.g AND x <> y", 38_400),
    "range": ("FROM a JOIN b ON a.i BETWEEN b.i - 100 AND b.i + 100", 38_140),
    "all unequal": ("FROM a JOIN b ON x <> y", 57_600),
}


def test_joins_of_texts(database: Path) -> None:
    select = "SELECT count(*), count(x), max(length(x) + length(y)), max(x) > '', max(y) > ''"
    found = answers(database, *(f"{select} {tables}" for tables, _ in JOINS.values()))
    assert found == [(rows, rows, 2 * 179 * 32, True, True) for _, rows in JOINS.values()]


SEMI = {
    "exists": ("EXISTS (SELECT 1 FROM b WHERE a.g = b.g AND x <> y AND b.i > 200)", 240),
    "not exists": ("NOT EXISTS (SELECT 1 FROM b WHERE a.g = b.g AND x <> y)", 0),
    "mark": ("x IN (SELECT y FROM b WHERE b.g <= a.g) OR i < 10", 10),
}


def test_rows_chosen_by_others(database: Path) -> None:
    found = answers(database, *(f"SELECT count(*) FROM a WHERE {one}" for one, _ in SEMI.values()))
    assert found == [(rows,) for _, rows in SEMI.values()]


CONSTANTS = {
    "case": f"CASE WHEN i % 2 = 0 THEN {LONG} ELSE i::VARCHAR END",
    "case of constants": f"CASE WHEN i % 2 = 0 THEN {LONG} ELSE 'y' END",
    "if": f"if(i % 2 = 0, {LONG}, i::VARCHAR)",
    "coalesce": f"coalesce(nullif(i % 2, 1)::VARCHAR, {LONG})",
    "greatest": f"greatest(i::VARCHAR, {LONG})",
    "least": f"least('y' || i, {LONG})",
    "nullif": f"nullif({LONG}, i::VARCHAR)",
    "substr": f"substr({LONG}, 1 + i % 100)",
    "left": f"left({LONG}, 250000 - i)",
    "concat": f"{LONG} || i",
    "upper": f"upper(CASE WHEN i > 5 THEN {LONG} ELSE 'a' END)",
}


def test_long_constants_beside_rows(database: Path) -> None:
    select = "SELECT count(x), max(length(x))"
    found = answers(database, *(f"{select} FROM (SELECT {one} x FROM few)" for one in CONSTANTS.values()))
    for count, longest in found:  # type: ignore[misc]
        assert count == 360
        assert 249_999 <= longest <= 250_004


ON_ALL_ROWS = (
    f"FROM few, (SELECT {LONG} x)",
    f"FROM few LEFT JOIN (SELECT {LONG} x) ON i >= 0",
    f"FROM (SELECT i, (SELECT {LONG}) x FROM few)",
    f"FROM (SELECT DISTINCT i, CASE WHEN i >= 0 THEN {LONG} ELSE '' END x FROM few)",
    f"FROM (SELECT CASE WHEN i >= 0 THEN {LONG} ELSE '' END x FROM few ORDER BY x, i)",
)


def test_a_long_text_on_all_rows(database: Path) -> None:
    found = answers(database, *(f"SELECT sum(length(x))::BIGINT {one}" for one in ON_ALL_ROWS))
    assert found == [(90_000_000,)] * len(ON_ALL_ROWS)


WINDOWS = {
    "so far": ("string_agg(i::VARCHAR, ',') OVER (ORDER BY i)", 28_889),
    "by partition": ("string_agg(i::VARCHAR, ',') OVER (PARTITION BY i % 2)", 14_444),
    "of all": ("string_agg(i::VARCHAR, ',') OVER ()", 28_889),
    "rows before": ("string_agg(i::VARCHAR, ',') OVER (ORDER BY i ROWS 2000 PRECEDING)", 10_004),
    "first": (f"first_value(CASE WHEN i = 0 THEN {LONG} ELSE i::VARCHAR END) OVER (ORDER BY i)", 250_000),
    "greatest": (f"max(CASE WHEN i = 0 THEN {LONG} ELSE i::VARCHAR END) OVER (ORDER BY i)", 250_000),
    "default": (f"lag(i::VARCHAR, 300, {LONG}) OVER (ORDER BY i)", 250_000),
}


def test_windows_of_texts(database: Path) -> None:
    queries = [
        f"SELECT count(s), max(length(s)) FROM (SELECT {call} s FROM {'few' if LONG in call else 'many'})"
        for call, _ in WINDOWS.values()
    ]
    found = answers(database, *queries)
    assert found == [(360 if LONG in call else 6000, longest) for call, longest in WINDOWS.values()]


def test_a_text_that_is_too_large_is_named_before_it_is_made(database: Path) -> None:
    joined = f"string_agg(i::VARCHAR, '{'-' * 20_000}') OVER ()"
    (error,) = answers(database, f"SELECT length(s) FROM (SELECT {joined} s FROM many)")
    assert isinstance(error, str)
    assert error.startswith("LargeStringError: string_agg() over a window would make 120,")
    assert "SET memory_limit" in error
