"""Walks along edges by column are the operators' and DuckDB's: cycles, nulls, equal edges, names as nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bamquery
from tests.selection.effort import effort
from tests.unit.engine.operators.recursion.forms import only_columns, only_operators, recursion_details

NODES = {
    "INTEGER": "(n - 2)::INTEGER",
    "BIGINT": "(n * 4000000007 - 5)::BIGINT",
    "UBIGINT": "(18446744073709551615 - n)::UBIGINT",
    "UTINYINT": "(n * 50)::UTINYINT",
    "HUGEINT": "(n - 3)::HUGEINT",
    "VARCHAR": "CASE n WHEN 0 THEN '' WHEN 1 THEN 'é' ELSE 'n' || n END",
    "DOUBLE": "CASE n WHEN 0 THEN -0.0::DOUBLE WHEN 1 THEN 0.0::DOUBLE ELSE n / 4 END",
    "DATE": "DATE '1969-12-30' + n::INTEGER",
    "TIMESTAMP": "TIMESTAMP '1969-12-31 23:59:59' + n * INTERVAL 1 SECOND",
    "BOOLEAN": "n % 2 = 0",
}
"""Types of nodes, and the node of a number."""

# `node`: what a walk begins with, as many as `nodes` has; `e`: edges from `a` to `b` of the weight `w`.
WALKS = [
    "SELECT node, 0 AS d FROM nodes UNION ALL SELECT b, d + 1 FROM t JOIN e ON node = a WHERE d < 3",
    "SELECT node, 0 AS d FROM nodes UNION SELECT b, 0 FROM t JOIN e ON node = a",
    "SELECT node, 0 AS d FROM nodes UNION SELECT b, d + 1 FROM e JOIN t ON node = a WHERE d < 5",
    "SELECT node, 0 AS d FROM nodes UNION SELECT b, d + w FROM t JOIN e ON node = a AND d + w < 9",
    "SELECT node, 0 AS d FROM nodes UNION SELECT b, d + 1 FROM t LEFT JOIN e ON node = a WHERE d < 4",
    "SELECT node, 0 AS d FROM nodes UNION ALL SELECT coalesce(b, node), d + 1 FROM t LEFT JOIN e "
    "ON node = a AND w > d WHERE d < 3",
    "SELECT node, 0 AS d FROM nodes UNION ALL SELECT b, d + 1 FROM e RIGHT JOIN t "
    "ON node IS NOT DISTINCT FROM a AND w <> d WHERE d < 2",
    "SELECT node, 0 AS d FROM nodes UNION SELECT b, w FROM t JOIN e ON node = a AND d IS NOT DISTINCT FROM w",
    "SELECT node, 0 AS d FROM nodes UNION SELECT b, w FROM t JOIN e ON d = w AND node IS NOT DISTINCT FROM a",
    "SELECT node, 0 AS d FROM nodes UNION ALL SELECT node, d + 1 FROM t WHERE d < 3 "
    "AND EXISTS (SELECT 1 FROM e WHERE a = node AND w > d)",
    "SELECT node, 0 AS d FROM nodes UNION ALL SELECT node, d + 1 FROM t ANTI JOIN e ON node = b AND d = w "
    "WHERE d < 3",
    "SELECT node, 0 AS d FROM nodes UNION ALL SELECT node, d + 1 FROM t SEMI JOIN e ON node = b WHERE d < 3",
    "SELECT node, 0 AS d FROM nodes UNION ALL SELECT p.node, q.d + 1 FROM t p JOIN t q ON p.node = q.node "
    "WHERE q.d < 2",
    "SELECT node, 0 AS d FROM nodes UNION ALL SELECT b, d + 1 FROM t JOIN "
    "(SELECT DISTINCT a, b FROM e WHERE w > 0) ON node = a WHERE d < 3",
    "SELECT node, 0 AS d FROM nodes UNION ALL SELECT DISTINCT b, d + 1 FROM t JOIN e ON node = a WHERE d < 4",
    "SELECT node, 0 AS d FROM nodes UNION ALL SELECT node, (max(d) + count(w) % 2 + 1)::INTEGER "
    "FROM t LEFT JOIN e ON node = b WHERE d < 4 GROUP BY node",
    "SELECT node, 0 AS d FROM nodes UNION ALL SELECT b, (min(d) + sum(w) + 1)::INTEGER "
    "FROM t JOIN e ON node = a GROUP BY b HAVING max(d) < 3 AND avg(d) >= 0",
    "SELECT node, 0 AS d FROM nodes UNION ALL SELECT node, d + 1 + (SELECT count(*) FROM e)::INTEGER % 2 "
    "FROM t WHERE d < 3",
    "SELECT node, 0 AS d FROM nodes UNION ALL SELECT b, d + 1 FROM t JOIN e ON node = a AND d + 1 = w "
    "AND d - 1 IS DISTINCT FROM w WHERE CASE WHEN node = b THEN d < 1 ELSE d < 3 END",
]
GROUPS = ("UNION ALL SELECT DISTINCT", "GROUP BY")
"""What is left to operators where it is by numbers of which equal ones are not the same: 0.0 and -0.0."""
NUMBER = st.integers(0, 4)
EDGE = st.tuples(st.none() | NUMBER, st.none() | NUMBER, st.none() | st.integers(0, 3))


@pytest.fixture(scope="module")
def systems() -> Iterator[tuple[bamquery.Connection, Any]]:
    with bamquery.connect(device="cpu") as con, duckdb.connect() as other:
        yield con, other


@pytest.mark.long
@pytest.mark.parametrize("kind", NODES)
@settings(max_examples=effort(2, 20))
@given(
    nodes=st.lists(st.none() | NUMBER, min_size=1, max_size=4),
    edges=st.lists(EDGE, max_size=10),
)
def test_walks_are_the_operators(
    kind: str,
    nodes: list[int | None],
    edges: list[tuple[int | None, ...]],
    systems: tuple[bamquery.Connection, Any],
) -> None:
    con, other = systems
    some_edges = f"{_rows(edges)}" if edges else f"{_rows([(None, None, None)])} WHERE false"
    for statement in (
        f"CREATE OR REPLACE TABLE nodes AS SELECT {_node('c0', kind)} AS node "
        f"FROM {_rows([(node,) for node in nodes])}",
        f"CREATE OR REPLACE TABLE e AS SELECT {_node('c0', kind)} AS a, {_node('c1', kind)} AS b, c2 AS w "
        f"FROM {some_edges}",
    ):
        con.sql(statement)
        other.execute(statement)
    every = effort(2, 1)  # half of the walks over the one type, the others over the next
    for walk in WALKS[list(NODES).index(kind) % every :: every]:
        sql = f"WITH RECURSIVE t(node, d) AS ({walk}) SELECT node, d FROM t"
        with only_columns():
            rows = con.sql(sql)
            mine = sorted(rows.fetchall(), key=repr)
            details = recursion_details(rows)
            if kind != "DOUBLE" or not any(word in walk for word in GROUPS):
                assert details.get("by_column", 0) == details["steps"], walk
        with only_operators():
            again = con.sql(f"{sql} ")
            assert sorted(again.fetchall(), key=repr) == mine, walk
            assert {"by_column", "by_row"}.isdisjoint(recursion_details(again))
        theirs = other.execute(sql).fetchall()
        assert sorted(map(_plain, theirs)) == sorted(map(_plain, mine)), walk


def _node(column: str, kind: str) -> str:
    return f"(SELECT CASE WHEN n IS NOT NULL THEN {NODES[kind]} END FROM (SELECT {column} AS n))"


def _rows(rows: list[tuple[int | None, ...]]) -> str:
    names = ", ".join(f"c{place}" for place in range(len(rows[0])))
    texts = (", ".join("NULL::INTEGER" if value is None else str(value) for value in row) for row in rows)
    return f"(VALUES {', '.join(f'({text})' for text in texts)}) v({names})"


def _plain(row: tuple[Any, ...]) -> str:
    """A row as it is compared: of two zeros one."""
    return repr([value + 0.0 if isinstance(value, float) else value for value in row])
