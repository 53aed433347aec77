"""Queries whose native code runs on several threads at once, over tables of many fragments, and of one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

FRAGMENTS: Final = 8
ROWS: Final = 20_000
"""Of a fragment: nineteen vectors and a part of one. Fewer, and calls would be over before others begin."""

MANY_ROWS: Final = 8 * ROWS
"""Of the one fragment of another table: a call over all of them is shared with an idle thread."""

_ROWS: Final = """
SELECT i AS a, i % 7 AS b, (i * 7919) % 1000 AS k, CASE WHEN i % 5 <> 0 THEN (i % 97)::SMALLINT END AS n,
       (i * 0.25)::DECIMAL(12, 2) AS m, i / 3.0 AS f, DATE '2024-01-01' + (i % 400)::INTEGER AS d,
       'kind ' || i % 6 AS s, 'a longer text number ' || i || ' of many ' || (i * 31) % 977 AS x
FROM (SELECT range AS i FROM range({begin}, {end}))
"""


def statements() -> list[str]:
    """What makes the tables `p`, packed, and `q`, plain, each of so many fragments, and `w`, of one."""
    made = []
    for table, encoding in (("p", "auto"), ("q", "plain")):
        for number in range(FRAGMENTS):
            rows = _ROWS.format(begin=number * ROWS, end=(number + 1) * ROWS)
            begin = (
                f"CREATE TABLE {table} WITH (encoding = '{encoding}') AS"
                if not number
                else f"INSERT INTO {table}"
            )
            made.append(f"{begin} {rows}")
    rows = _ROWS.format(begin=0, end=MANY_ROWS)
    made.append(f"CREATE TABLE w WITH (encoding = 'auto') AS {rows}")
    return made


_MEMBERS: Final = ", ".join(str(number * number) for number in range(40))
_QUERIES: Final = {
    "scan": "SELECT a, b, n, m, f, d, s, x FROM {t} WHERE a % 1000 = 3 ORDER BY a",
    "selection": "SELECT count(*), max(x) FROM {t} WHERE k BETWEEN 100 AND 300 AND n < 50 AND m > 7.25",
    "members": "SELECT count(*), sum(b) FROM {t} WHERE k IN ({members}) OR s IN ('kind 1', 'kind 4')",
    "members of expressions": "SELECT count(*) FROM {t} WHERE a + b IN ({members})",
    "few rows": "SELECT a, x, m FROM {t} WHERE k = 17 ORDER BY a",
    "program": "SELECT sum((a * 3 + n) * m), sum(CASE WHEN b > 3 THEN f ELSE -f END), avg(f) FROM {t}",
    "few groups": "SELECT b, s, count(*), sum(m * 2), avg(f), min(d) FROM {t} GROUP BY b, s ORDER BY b, s",
    "many groups": "SELECT k, b, count(n), sum(a) FROM {t} GROUP BY k, b ORDER BY k, b LIMIT 50",
    "groups of strings": "SELECT x, count(*) FROM {t} GROUP BY x ORDER BY x LIMIT 20",
    "distinct": "SELECT count(DISTINCT k), count(DISTINCT x), count(DISTINCT d) FROM {t}",
    "join": "SELECT count(*), sum(l.m) FROM {t} l JOIN {u} r ON l.a = r.k AND l.b = r.b WHERE r.n < 60",
    "semi-join": "SELECT count(*), sum(a) FROM {t} WHERE a IN (SELECT k FROM {u} WHERE b = 3)",
    "join of strings": "SELECT count(*) FROM {t} l JOIN {u} r ON l.x = r.x WHERE r.k < 40",
    "strings": "SELECT count(*), min(x) FROM {t} WHERE x LIKE '%ber 1%9%' OR x LIKE 'a%77'",
    "sort": "SELECT a, x FROM {t} ORDER BY x DESC, a LIMIT 30",
    "window": "SELECT sum(r) FROM (SELECT row_number() OVER (PARTITION BY b ORDER BY m, a) AS r FROM {t})",
}

QUERIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"{name}, {kind}": text.format(t=table, u=other, members=_MEMBERS)
        for name, text in _QUERIES.items()
        for kind, table, other in (("packed", "p", "q"), ("plain", "q", "p"), ("whole", "w", "q"))
    }
)
SETTINGS: Final[tuple[Mapping[str, object], ...]] = (
    {},
    {"reader": "direct"},
    {"reader": "queues"},
    {"strategy": "blocks"},
    {"strategy": "vectors", "verify_checksums": "all"},
    {"programs": False},
    {"memory_limit": "64MB"},
)
"""Of connections that are asked beside each other."""
