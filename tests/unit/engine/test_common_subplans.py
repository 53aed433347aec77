"""Which parts of a query are computed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.connection.connection import Connection

SUMS = "SELECT a, sum(b) AS s FROM t GROUP BY a"


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with bamquery.connect(device="cpu") as con:
        con.sql(
            "CREATE TABLE t AS SELECT i % 3 AS a, i AS b FROM (VALUES (1), (2), (3), (4), (5), (6), (7)) v(i)"
        )
        yield con


def names(connection: Connection, sql: str) -> Counter[str]:
    """How many operators of each kind run."""
    relation = connection.sql(sql)
    relation.fetchall()
    return Counter(part.name for part in relation.profile.root.walk())


@pytest.mark.parametrize(
    ("sql", "scans", "shared"),
    [
        (f"WITH w AS ({SUMS}) SELECT a FROM w WHERE s = (SELECT max(s) FROM w)", 1, 2),
        (f"WITH w AS ({SUMS}) SELECT * FROM w UNION ALL SELECT * FROM w UNION ALL FROM w", 1, 3),
        # Written twice is as well as named twice.
        (f"SELECT * FROM ({SUMS}) x JOIN ({SUMS}) y USING (a)", 1, 2),
        # One within another one: the inner one has another reader, or none.
        (
            f"WITH w AS ({SUMS}), v AS (SELECT max(s) AS m FROM w) "
            "FROM v JOIN v y USING (m) JOIN w ON s = v.m",
            1,
            4,
        ),
        (f"WITH w AS ({SUMS}), v AS (SELECT max(s) AS m FROM w) FROM v JOIN v y USING (m)", 1, 2),
        (
            "WITH w AS (SELECT a, rank() OVER (ORDER BY b) AS r FROM t) FROM w x JOIN w y ON x.r = y.r + 1",
            1,
            2,
        ),
        ("WITH w AS (SELECT a, b FROM t WHERE b > 2) FROM w x JOIN w y USING (b)", 2, 0),  # scans read less
        (f"WITH w AS ({SUMS}) FROM (FROM w WHERE a = 1) UNION ALL FROM (FROM w WHERE a = 2)", 2, 0),
        (f"WITH w AS ({SUMS}) FROM (FROM w WHERE a = 1) UNION ALL FROM (FROM w WHERE a = 1)", 1, 2),
        ("WITH w AS (SELECT count(*) AS n FROM (VALUES (1)) v(x)) FROM w UNION ALL FROM w", 0, 0),
        (
            f"WITH RECURSIVE w AS ({SUMS}), "
            "r AS (SELECT a FROM w UNION SELECT r.a + 1 FROM r JOIN w USING (a)) FROM r UNION ALL FROM r",
            2,  # the recursion is shared, what its step reads is read by each step
            2,
        ),
    ],
)
def test_what_is_shared(connection: Connection, sql: str, scans: int, shared: int) -> None:
    found = names(connection, sql)
    assert (found["Scan"], found["Shared"]) == (scans, shared)


def test_a_filter_known_late_does_not_reach_shared_rows(connection: Connection) -> None:
    connection.load("wide", pa.table({"a": np.arange(5120) // 1024}))
    groups = "SELECT a, count(*) AS n FROM wide GROUP BY a"
    joined = "SELECT sum(n) FROM w JOIN (VALUES (1), (9)) v(a) USING (a)"
    assert connection.sql(f"WITH w AS ({groups}) {joined}").fetchall() == [(1024,)]
    both = f"WITH w AS ({groups}) FROM ({joined}) UNION ALL SELECT sum(n) FROM w"
    assert connection.sql(both).fetchall() == [(1024,), (5120,)]
    assert names(connection, both)["Shared"] == 2


_JOINED = "WITH w AS (SELECT x.a, x.b, y.b AS c FROM t x JOIN t y ON x.a = y.a)"


@pytest.mark.parametrize(
    "sql",
    [
        f"{_JOINED} SELECT p.b, q.c FROM w p JOIN w q ON p.b = q.b WHERE p.c < 3 AND q.a = 1",
        f"{_JOINED} SELECT b FROM w WHERE c < 3 UNION ALL SELECT c FROM w WHERE b > 4",
        f"{_JOINED} SELECT count(*) FROM w p, (SELECT b FROM w WHERE c = 2) q, w r WHERE p.a = r.b",
        f"{_JOINED} SELECT b FROM w p WHERE c > 1 AND EXISTS (FROM w q WHERE q.b = p.b + 1 AND q.c = 4)",
        f"{_JOINED} SELECT p.b FROM w p LEFT JOIN w q ON p.b = q.c AND q.a = 2 WHERE p.c <> 5",
        f"{_JOINED}, v AS (SELECT p.b FROM w p JOIN w q ON p.b = q.c WHERE q.b > 1) "
        "SELECT x.b FROM v x JOIN v y USING (b) WHERE x.b < 6 AND y.b > 2",
        f"{_JOINED}, v AS (SELECT a, sum(b) AS s, max(c) AS m FROM w GROUP BY a) "
        "SELECT x.s FROM v x JOIN v y ON x.a = y.a WHERE y.m > 3 ORDER BY x.m LIMIT 2",
        f"{_JOINED} SELECT b IN (SELECT c FROM w WHERE a = 1) AS m FROM w WHERE c = 3",
    ],
)
def test_a_large_part_is_computed_once_whatever_one_reader_asks_for(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    small = Counter(connection.sql(sql).fetchall())
    scans = names(connection, sql)["Scan"]
    monkeypatch.setattr("bamquery.plan.rewriting._MOST_COPIED", 2)
    assert Counter(connection.sql(f"{sql} ").fetchall()) == small
    found = names(connection, f"{sql}  ")
    assert found["Scan"] == 2 < scans
    assert found["Shared"] >= 2
