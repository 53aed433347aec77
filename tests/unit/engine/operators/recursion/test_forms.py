"""Which form computes steps: from rows to columns as they grow, and to operators where these cannot go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import bamquery
from bamquery.engine.execution.context import ExecutionContext
from tests.unit.engine.operators.recursion.forms import COLUMNS, only_operators, recursion_details


@pytest.fixture
def graph() -> Iterator[bamquery.Connection]:
    """Edges of a tree with five children each, from 0, and one back to it."""
    with bamquery.connect(device="cpu") as con:
        con.sql(
            "CREATE TABLE e AS SELECT i // 5 AS a, i + 1 AS b, 'n' || i // 5 AS x, 'n' || i + 1 AS y "
            "FROM range(4000) r(i) UNION ALL SELECT 500, 0, 'n500', 'n0'"
        )
        yield con


def check(con: bamquery.Connection, query: str, columns: str) -> dict[str, Any]:
    """The profile's details; the rows are those of operators."""
    sql = f"WITH RECURSIVE t({columns}) AS ({query}) SELECT {columns}, count(*) FROM t GROUP BY ALL"
    rows = con.sql(sql)
    mine = sorted(rows.fetchall(), key=repr)  # some have nulls
    with only_operators():
        assert sorted(con.sql(f"{sql} ").fetchall(), key=repr) == mine
    return recursion_details(rows)


@pytest.mark.parametrize("union", ["UNION", "UNION ALL"])
@pytest.mark.parametrize(("first", "a", "b"), [("0::BIGINT", "a", "b"), ("'n0'", "x", "y")])
def test_steps_that_grow_go_from_rows_to_columns(
    union: str, first: str, a: str, b: str, graph: bamquery.Connection
) -> None:
    """The root is reached again by column: it was seen by row."""
    depth = "d + 1" if union == "UNION ALL" else "CASE WHEN d < 6 THEN d + 1 ELSE 0 END"
    query = f"SELECT {first}, 0 {union} SELECT {b}, {depth} FROM t JOIN e ON node = {a} WHERE d < 8"
    details = check(graph, query, "node, d")
    assert details["by_row"] > 0
    assert details["by_column"] > 0
    assert details["by_row"] + details["by_column"] == details["steps"]


def test_rows_that_shrink_again_stay_columns(graph: bamquery.Connection) -> None:
    query = "SELECT 0::BIGINT UNION SELECT b FROM t JOIN e ON node = a WHERE b % 7 <> 3 OR node < 90"
    details = check(graph, query, "node")
    assert details["by_row"] + details["by_column"] == details["steps"]


def test_large_sides_need_no_rows(graph: bamquery.Connection) -> None:
    """A table that is too large for Python is joined by column from the first row on."""
    graph.sql("CREATE TABLE far AS SELECT i AS a, (i * 7 + 1) % 50000 AS b FROM range(50000) r(i)")
    details = check(graph, "SELECT 1::BIGINT, 0 UNION SELECT b, 0 FROM t JOIN far ON node = a", "node, d")
    assert details["by_column"] == details["steps"] > 10


def test_too_many_pairs_are_left_to_operators(
    graph: bamquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{COLUMNS}._MOST_MADE", 700)
    details = check(
        graph, "SELECT 0, 0 UNION ALL SELECT b, d + 1 FROM t JOIN e ON node = a WHERE d < 7", "node, d"
    )
    assert 0 < details["by_column"] < details["steps"]


@pytest.mark.parametrize("union", ["UNION", "UNION ALL"])
def test_steps_with_more_rows_are_left_to_operators(
    union: str, graph: bamquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came before, by row and by column, is known to them."""
    monkeypatch.setattr(f"{COLUMNS}.MOST_ROWS", 300)
    query = f"SELECT 0 {union} SELECT b % 900 FROM t JOIN e ON node = a WHERE a <> 500 AND b > node"
    if union == "UNION ALL":
        query += " AND b < 900"
    details = check(graph, query, "node")
    assert details["by_row"] > 0
    assert details["by_column"] > 0
    assert details["by_row"] + details["by_column"] < details["steps"]


def test_special_numbers_of_a_side_are_left_to_operators(graph: bamquery.Connection) -> None:
    graph.sql(
        "CREATE TABLE special AS SELECT 'inf'::DOUBLE AS a, 1.5 AS b UNION ALL SELECT 1.5, 'inf'::DOUBLE"
    )
    details = check(
        graph, "SELECT 1.5::DOUBLE, 0 UNION SELECT b, 0 FROM t JOIN special ON node = a", "node, d"
    )
    assert {"by_row", "by_column"}.isdisjoint(details)


def test_a_sum_that_overflows_says_what_operators_say(graph: bamquery.Connection) -> None:
    """A step that cannot be computed by column gives nothing, and those before it are not lost."""
    query = (
        "WITH RECURSIVE t(node, d) AS (SELECT i, 100::TINYINT FROM range(40) r(i) UNION ALL "
        "SELECT b, d + 9::TINYINT FROM t JOIN e ON node = a) SELECT d FROM t"
    )
    assert {row[0] for row in graph.sql(f"{query} LIMIT 300").fetchall()} == {100, 109, 118}
    with pytest.raises(bamquery.ExecutionError, match="TINYINT overflow: 127"):
        graph.sql(query).fetchall()


def test_several_partners_of_a_scalar_subquery_say_what_operators_say(graph: bamquery.Connection) -> None:
    query = (
        "WITH RECURSIVE t(node, d) AS (SELECT i, 0 FROM range(40) r(i) UNION ALL "
        "SELECT (SELECT b FROM e WHERE a = node), d + 1 FROM t WHERE d < 2) FROM t"
    )
    with pytest.raises(bamquery.ExecutionError, match="gave several rows"):
        graph.sql(query).fetchall()


def test_sides_beyond_the_memory_limit_are_left_to_operators() -> None:
    with bamquery.connect(device="cpu") as con:
        con.sql("CREATE TABLE far AS SELECT i AS a, (i * 7 + 1) % 400000 AS b FROM range(400_000) r(i)")
        sql = (
            "WITH RECURSIVE t(node, d) AS (SELECT 1::BIGINT, 0 UNION ALL "
            "SELECT b, d + 1 FROM t JOIN far ON node = a WHERE d < 6) SELECT max(node), max(d) FROM t"
        )
        free = con.sql(sql)
        expected = free.fetchall()
        assert recursion_details(free)["by_column"] == 7
        con.sql("SET memory_limit = '12MB'")
        held = con.sql(f"{sql} ")
        assert held.fetchall() == expected
        assert "by_column" not in recursion_details(held)


@pytest.mark.parametrize("union", ["UNION", "UNION ALL"])
def test_cancel_among_joins(union: str, graph: bamquery.Connection) -> None:
    graph.sql("CREATE TABLE ring AS SELECT i AS a, (i + 1) % 100 AS b FROM range(100) r(i)")
    steps = f"SELECT i, 0 FROM range(100) r(i) {union} SELECT b, d + 1 FROM t JOIN ring ON node = a"
    result = graph.sql(f"WITH RECURSIVE t(node, d) AS ({steps}) SELECT count(*) FROM t").run()
    threading.Timer(0.2, result.cancel).start()
    with pytest.raises(bamquery.CancelledError):
        list(result)


def test_each_step_with_joins_and_groups_looks_for_a_cancel(
    graph: bamquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    original = ExecutionContext.check_cancelled

    def counted(context: ExecutionContext[Any]) -> None:
        nonlocal looks
        looks += 1
        original(context)

    monkeypatch.setattr(ExecutionContext, "check_cancelled", counted)
    steps = (
        "SELECT i, 0 FROM range(40) r(i) UNION ALL SELECT node, (max(d) + 1)::INTEGER FROM t "
        "JOIN e ON node = a WHERE d < 500 GROUP BY node"
    )
    found = graph.sql(f"WITH RECURSIVE t(node, d) AS ({steps}) SELECT count(*) FROM t")
    assert found.fetchall() == [(40 * 501,)]
    assert recursion_details(found)["by_column"] > 500
    assert looks > 500


def test_texts_that_steps_make(graph: bamquery.Connection) -> None:
    """Paths, of which each is new: computed by Python, and kept by number."""
    query = (
        "SELECT 'n' || i, 'n' || i FROM range(16) r(i) UNION ALL SELECT y, path || '>' || upper(y) "
        "FROM t JOIN e ON node = x AND b % 2 = 0 WHERE length(path) < 7"
    )
    details = check(graph, query, "node, path")
    assert details["by_column"] == details["steps"] > 2


@pytest.mark.parametrize(
    "made",
    [
        "'%' || node || '%s%%' || d || node",
        "node || '' || path || NULL || path",
        "(node || '>') || (nullif(path, 'n1') || '<' || node)",
        "concat(node, '%d', NULL, nullif(path, node), d)",
    ],
)
def test_texts_of_several_parts(graph: bamquery.Connection, made: str) -> None:
    """Put together at once, whatever stands in the constants; null where a part of `||` is."""
    query = (
        "SELECT 'n' || i, 'n' || i, 0 FROM range(16) r(i) "
        f"UNION ALL SELECT y, substr({made}, 1, 9), d + 1 FROM t JOIN e ON node = x AND b % 2 = 0 WHERE d < 4"
    )
    details = check(graph, query, "node, path, d")
    assert details["by_column"] == details["steps"] > 2
