"""What planning costs, in calls of functions, grows with the length of a statement and no faster."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import pytest

import bamquery
from bamquery.plan import optimizer
from bamquery.plan.nodes import Plan
from bamquery.plan.rewriting import expressions_of, nodes_of
from bamquery.plan.rules.push_down_predicates import push_down_predicates
from tests.selection.effort import effort

_MOST_GROWTH = 2.6
"""Twice the length may cost so many times as much more; 2 is linear, 4 quadratic."""

_FAMILIES: dict[str, tuple[int, Callable[[int], str]]] = {
    "and": (50, lambda n: f"SELECT 1 FROM t WHERE {' AND '.join(f'x <> {i}' for i in range(n))}"),
    "or": (40, lambda n: f"SELECT 1 FROM t WHERE {' OR '.join(f'x > {i} AND y < {i}' for i in range(n))}"),
    "in": (100, lambda n: f"SELECT 1 FROM t WHERE x IN ({', '.join(map(str, range(n)))})"),
    "case": (50, lambda n: f"SELECT CASE x {' '.join(f'WHEN {i} THEN y' for i in range(n))} END FROM t"),
    "wide": (50, lambda n: f"SELECT {', '.join(f'x + {i} AS c{i}' for i in range(n))} FROM t"),
    "sum": (30, lambda n: f"SELECT {' + '.join(['x'] * n)} FROM t"),
    "union": (30, lambda n: " UNION ALL ".join(f"SELECT {i}" for i in range(n))),
    "parentheses": (20, lambda n: f"SELECT {'(1 + ' * n}x{')' * n} FROM t"),
    "subqueries": (20, lambda n: f"SELECT x FROM {'(SELECT x + 1 AS x FROM ' * n}t{')' * n}"),
    "values": (50, lambda n: f"SELECT * FROM (VALUES {', '.join(f'({i}, {i})' for i in range(n))}) v"),
    "with": (
        25,
        lambda n: (
            "WITH c0 AS (SELECT x AS a FROM t)"
            + "".join(f", c{i} AS (SELECT a + 1 AS a FROM c{i - 1})" for i in range(1, n))
            + f" SELECT * FROM c{n - 1}"
        ),
    ),
    "with conditions": (
        40,
        lambda n: (
            "WITH c0 AS (SELECT x AS a FROM t)"
            + "".join(f", c{i} AS (SELECT a + 1 AS a FROM c{i - 1} WHERE a <> {i})" for i in range(1, n))
            + f" SELECT * FROM c{n - 1}"
        ),
    ),
    "with conditions, columns in turns": (
        40,
        lambda n: (
            "WITH c0 AS (SELECT x AS a, y AS b FROM t)"
            + "".join(f", c{i} AS (SELECT b AS a, a AS b FROM c{i - 1} WHERE a <> {i})" for i in range(1, n))
            + f" SELECT * FROM c{n - 1}"
        ),
    ),
    "with, each twice": (
        15,
        lambda n: (
            "WITH c0 AS (SELECT x AS a FROM t)"
            + "".join(f", c{i} AS (SELECT p.a FROM c{i - 1} p, c{i - 1} q)" for i in range(1, n))
            + f" SELECT * FROM c{n - 1}"
        ),
    ),
    "with, each twice, once with a condition": (
        20,
        lambda n: (
            "WITH c0 AS (SELECT x AS a FROM t)"
            + "".join(
                f", c{i} AS (SELECT p.a FROM c{i - 1} p, c{i - 1} q WHERE p.a < {i})" for i in range(1, n)
            )
            + f" SELECT * FROM c{n - 1}"
        ),
    ),
    "with, each twice, each with a condition": (
        20,
        lambda n: (
            "WITH c0 AS (SELECT x AS a FROM t)"
            + "".join(
                f", c{i} AS (FROM c{i - 1} WHERE a <> {i} UNION SELECT a + 1 FROM c{i - 1} WHERE a <> -{i})"
                for i in range(1, n)
            )
            + f" SELECT * FROM c{n - 1}"
        ),
    ),
    "with joins and conditions": (
        40,
        lambda n: (
            "WITH c0 AS (SELECT x AS a FROM t)"
            + "".join(
                f", c{i} AS (SELECT p.a FROM c{i - 1} p LEFT JOIN t ON x = a WHERE p.a <> {i})"
                for i in range(1, n)
            )
            + f" SELECT * FROM c{n - 1}"
        ),
    ),
    "outer joins and conditions": (
        30,
        lambda n: (
            f"SELECT 1 FROM t {' '.join(f'LEFT JOIN t t{i} ON t{i}.x = t.x' for i in range(n))} "
            f"WHERE {' AND '.join(f't.x <> {i}' for i in range(n))}"
        ),
    ),
    "joins and conditions": (
        20,
        lambda n: (
            f"SELECT count(*) FROM {', '.join(f't t{i}' for i in range(n))} "
            f"WHERE {' AND '.join(f't{i}.x = t{i - 1}.y' for i in range(1, n))}"
        ),
    ),
    "joins": (
        20,
        lambda n: f"SELECT count(*) FROM {', '.join(f'(SELECT x + {i} FROM t) t{i}' for i in range(n))}",
    ),
}


def _calls(work: Callable[[], object]) -> int:
    """How many Python functions are called, on this thread and those that it starts."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        """Asked of calls alone, where a profile would be of what is built in too, and of every return."""
        nonlocal count
        del frame, event, argument
        count += 1

    threading.settrace(trace)
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
    return count


@pytest.fixture
def con() -> Iterator[bamquery.Connection]:
    with bamquery.connect(device="cpu", threads=1) as connection:
        connection.sql("CREATE TABLE t AS SELECT range AS x, range AS y FROM range(3)")
        yield connection


def _growth(con: bamquery.Connection, family: str) -> float:
    n, statement = _FAMILIES[family]
    n = effort(-(-n // 2), n)

    def planned(size: int) -> None:
        con.sql(statement(size)).run().close()

    planned(n + 1)  # what is imported, and made once, is there then
    least, middle, most = (_calls(lambda size=size: planned(size)) for size in (n, 2 * n, 4 * n))
    return (most - middle) / (middle - least)


@pytest.mark.long
@pytest.mark.parametrize("family", _FAMILIES)
def test_work_is_linear_in_the_length_of_a_statement(con: bamquery.Connection, family: str) -> None:
    assert _growth(con, family) < _MOST_GROWTH


@pytest.mark.parametrize("query", ["DISTINCT x", "x, count(*) OVER (PARTITION BY x) AS y"])
def test_conditions_of_a_chain_go_down_together(
    con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """Each by itself through all below comes to a growth of 3.9."""
    plans: list[Plan] = []

    def kept(plan: Plan) -> Plan:
        plans.append(plan)
        return optimizer.optimize(plan)

    monkeypatch.setattr("bamquery.session.optimized_plans.optimize", kept)
    counts = []
    for size in (20, 40, 80):
        ends = "".join(f" WHERE x <> {i})" for i in range(size))
        con.sql(f"SELECT x FROM {f'(SELECT {query} FROM ' * size}t{ends}").run().close()
        counts.append(_calls(partial(push_down_predicates, plans[-1])))
    assert (counts[2] - counts[1]) / (counts[1] - counts[0]) < _MOST_GROWTH


@pytest.mark.parametrize(
    "level",
    [
        "SELECT p.a FROM {0} p, {0} q WHERE p.a < {1}",
        "SELECT p.a FROM {0} p JOIN {0} q USING (a) WHERE p.a <> {1} AND q.a <> -{1}",
        "SELECT a FROM {0} WHERE a <> {1} UNION ALL SELECT a FROM {0} WHERE a <> -{1}",
        "SELECT a FROM {0} WHERE a < (SELECT max(a) FROM {0}) + {1}",
        "SELECT a FROM {0} p WHERE a <> {1} AND EXISTS (FROM {0} q WHERE q.a = p.a + {1})",
        "SELECT p.a, q.b FROM {0} p JOIN {0} q ON p.a = q.b WHERE p.b <> {1}",
    ],
)
def test_what_is_read_twice_stays_one_node(
    con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    """Conditions and columns of one reader would copy all that is below, and each copy once more."""
    plans: list[Plan] = []

    def kept(plan: Plan) -> Plan:
        plans.append(optimizer.optimize(plan))
        return plans[-1]

    monkeypatch.setattr("bamquery.session.optimized_plans.optimize", kept)
    counts = []
    for size in (10, 20, 40):
        chain = "".join(f", c{i} AS ({level.format(f'c{i - 1}', i)})" for i in range(1, size))
        con.sql(f"WITH c0 AS (SELECT x AS a, y AS b FROM t){chain} SELECT * FROM c{size - 1}").run().close()
        counts.append(len(list(nodes_of(plans[-1]))))
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])
    assert counts[2] < 6 * 40


@pytest.mark.long
def test_a_rule_that_is_quadratic_is_seen(con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(plan: Plan) -> Plan:
        for _ in list(nodes_of(plan)):
            for node in nodes_of(plan):
                for _ in range(10):
                    expressions_of(node)
        return plan

    monkeypatch.setattr(optimizer, "RULES", (*optimizer.RULES, slow))
    assert _growth(con, "joins") > _MOST_GROWTH


def test_many_parameters(con: bamquery.Connection) -> None:
    def planned(size: int) -> None:
        con.sql(f"SELECT * FROM (VALUES {', '.join(['(?, ?)'] * size)}) v", list(range(2 * size))).run()

    planned(11)
    least, middle, most = (_calls(lambda size=size: planned(size)) for size in (50, 100, 200))
    assert (most - middle) / (middle - least) < _MOST_GROWTH


@pytest.mark.long
def test_a_summary_is_linear_in_columns(con: bamquery.Connection) -> None:
    sizes = effort(16, 32), effort(32, 64), effort(64, 128)

    def summarized(size: int) -> None:
        con.sql(f"SUMMARIZE wide{size}").run().close()

    for size in sizes:
        con.sql(f"CREATE TABLE wide{size} AS SELECT {', '.join(f'{i} AS c{i}' for i in range(size))}")
    summarized(sizes[0])
    least, middle, most = (_calls(lambda size=size: summarized(size)) for size in sizes)
    assert (most - middle) / (middle - least) < _MOST_GROWTH
