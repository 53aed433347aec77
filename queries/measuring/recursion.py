"""`bamquery bench recursion`: what a step of a recursive query takes, beside DuckDB.

Times are processor time of the whole process, the fastest of several runs, over the number of steps: planning
and the first part are in it, which many steps make little of.
"""

# ruff: noqa: S608 (statements are what it makes; nothing of them comes from outside)

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bamquery.connection.connection import connect
from bamquery.queries.arguments import positive
from bamquery.queries.measuring.machine import describe_machine

_EDGES: Final = "CREATE TABLE edges AS SELECT range AS a, (range + 1) % 10000 AS b FROM range(10000)"
_PATHS: Final = (
    "CREATE TABLE paths AS SELECT range AS a, (range * 48271 + 11) % 1000000 AS b FROM range(1000000)"
)
"""A million edges, one from each node."""
_GRAPH: Final = (
    "CREATE TABLE graph AS SELECT a, b, 'node ' || a AS name, 'node ' || b AS next FROM ("
    "SELECT range // 10 AS a, (range * 48271 + range // 7 * 104729) % 100000 AS b FROM range(1000000))"
)
"""A million edges, ten from each of 100,000 nodes, with names."""


@dataclass(frozen=True)
class Walk:
    """A recursive query of so many steps; `{n}` stands for their number.

    Attributes:
        setup: makes the table that it reads.
        part: it has one in so many of the steps that are asked for.
        own_steps: how many it has, whatever is asked for; None: it has those.
    """

    name: str
    columns: str
    first: str
    step: str
    union: str = "UNION ALL"
    setup: str = _EDGES
    part: int = 1
    own_steps: int | None = None

    def steps(self, wanted: int) -> int:
        """How many steps it has where so many are asked for."""
        return self.own_steps or max(wanted // self.part, 1)

    def statement(self, steps: int) -> str:
        """The query, which gives one row."""
        step = self.step.format(n=steps)
        return (
            f"WITH RECURSIVE t({self.columns}) AS ({self.first} {self.union} {step}) SELECT count(*) FROM t"
        )


@dataclass(frozen=True)
class Measured:
    """Seconds a step, of each system; DuckDB's are None where it is not installed."""

    name: str
    bamquery: float
    duckdb: float | None


def _many_walks(name: str, rows: int, union: str = "UNION ALL") -> Walk:
    return Walk(
        name, "k, i", f"SELECT range, 0 FROM range({rows})", "SELECT k, i + 1 FROM t WHERE i < {n}", union
    )


WALKS: Final = (
    Walk("numbers", "i", "SELECT 1", "SELECT i + 1 FROM t WHERE i < {n}"),
    Walk("numbers, UNION", "i", "SELECT 1", "SELECT i + 1 FROM t WHERE i < {n}", "UNION"),
    Walk(
        "dates",
        "d",
        "SELECT DATE '2000-01-01'",
        "SELECT (d + INTERVAL 1 DAY)::DATE FROM t WHERE d < DATE '2000-01-01' + {n}",
    ),
    Walk(
        "timestamps",
        "d, i",
        "SELECT TIMESTAMP '2000-01-01', 0",
        "SELECT d + INTERVAL 1 HOUR, i + 1 FROM t WHERE i < {n}",
    ),
    Walk(
        "texts", "s, i", "SELECT 'a', 0", "SELECT upper(substr(s || 'b', 1, 20)), i + 1 FROM t WHERE i < {n}"
    ),
    Walk(
        "aggregates",
        "i, s",
        "SELECT 1, 1::HUGEINT",
        "SELECT max(i) + 1, sum(i) FROM t HAVING max(i) < {n}",
    ),
    Walk(
        "GROUP BY",
        "k, i",
        "SELECT range % 4, range // 4 FROM range(8)",
        "SELECT k, (max(i) + 1)::BIGINT FROM t GROUP BY k HAVING max(i) < {n}",
    ),
    Walk(
        "DISTINCT",
        "k, i",
        "SELECT range, 0 FROM range(3)",
        "SELECT DISTINCT k // 2, i + 1 FROM t WHERE i < {n}",
    ),
    Walk(
        "join with 10,000 rows",
        "i, n",
        "SELECT 0::BIGINT, 0",
        "SELECT e.b, n + 1 FROM t JOIN edges e ON e.a = t.i WHERE n < {n}",
    ),
    Walk(
        "left join with 10,000 rows",
        "i, n",
        "SELECT 0::BIGINT, 0",
        "SELECT coalesce(e.b, 0), n + 1 FROM t LEFT JOIN edges e ON e.a = t.i WHERE n < {n}",
    ),
    Walk(
        "EXISTS over 10,000 rows",
        "i",
        "SELECT 1",
        "SELECT i + 1 FROM t WHERE i < {n} AND EXISTS (SELECT 1 FROM edges WHERE a = i)",
    ),
    Walk(
        "join by square roots",
        "i, n",
        "SELECT 0::BIGINT, 0",
        "SELECT e.b, n + 1 FROM t JOIN edges e ON sqrt(e.a) = sqrt(t.i) WHERE n < {n}",
    ),
    Walk("itself twice", "i", "SELECT 1", "SELECT p.i + 1 FROM t p JOIN t q ON p.i = q.i WHERE p.i < {n}"),
    Walk("a subquery", "i", "SELECT 1", "SELECT (SELECT max(i) + 1 FROM t) FROM t WHERE i < {n}"),
    Walk(
        "a window",
        "k, i",
        "SELECT range, 0 FROM range(3)",
        "SELECT row_number() OVER (ORDER BY k DESC), i + 1 FROM t WHERE i < {n}",
    ),
    _many_walks("50 rows", 50),
    _many_walks("200 rows", 200),
    _many_walks("5,000 rows", 5000),
    _many_walks("200 rows, UNION", 200, "UNION"),
    Walk(
        "200 rows, UNION, round",
        "k",
        "SELECT range FROM range(200)",
        "SELECT (k + 200) % (200 * {n}) FROM t",
        "UNION",
    ),
    Walk(
        "200 rows, join",
        "i, n",
        "SELECT range, 0 FROM range(200)",
        "SELECT e.b, n + 1 FROM t JOIN edges e ON e.a = t.i WHERE n < {n}",
    ),
    Walk(
        "600 rows, join, UNION",
        "i, n",
        "SELECT range, 0 FROM range(600)",
        "SELECT e.b, n + 1 FROM t JOIN edges e ON e.a = t.i WHERE n < {n}",
        "UNION",
    ),
    Walk(
        "200 texts",
        "s, i",
        "SELECT range::VARCHAR, 0 FROM range(200)",
        "SELECT s, i + 1 FROM t WHERE i < {n}",
    ),
    Walk(
        "200 groups",
        "k, i",
        "SELECT range, 0 FROM range(200)",
        "SELECT k, (max(i) + 1)::INTEGER FROM t GROUP BY k HAVING max(i) < {n}",
    ),
    Walk(
        "200 paths",
        "s, p, i",
        "SELECT range, '', 0 FROM range(200)",
        "SELECT s, substr(s || '/' || p, 1, 12), i + 1 FROM t WHERE i < {n}",
        part=10,
    ),
    Walk(
        "1 M edges, 200 rows",
        "i, n",
        "SELECT range, 0 FROM range(200)",
        "SELECT b, n + 1 FROM t JOIN paths ON a = i WHERE n < {n}",
        setup=_PATHS,
    ),
    Walk(
        "1 M edges, 20,000 rows",
        "i, n",
        "SELECT range, 0 FROM range(20000)",
        "SELECT b, n + 1 FROM t JOIN paths ON a = i WHERE n < {n}",
        setup=_PATHS,
        part=20,
    ),
    Walk(
        "1 M edges, 200 rows, UNION",
        "i",
        "SELECT range FROM range(200)",
        "SELECT b FROM t JOIN paths ON a = i",
        "UNION",
        setup=_PATHS,
        own_steps=29_648,
    ),
    Walk(
        "1 M edges, all nodes",
        "i",
        "SELECT 0::BIGINT",
        "SELECT b FROM t JOIN graph ON a = i",
        "UNION",
        setup=_GRAPH,
        own_steps=8,
    ),
    Walk(
        "1 M edges, all names",
        "s",
        "SELECT 'node 0'",
        "SELECT next FROM t JOIN graph ON name = s",
        "UNION",
        setup=_GRAPH,
        own_steps=8,
    ),
)


def main(argv: Sequence[str]) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bamquery bench recursion", description=__doc__)
    parser.add_argument("--steps", type=positive, default=1000, help="of each query (default: 1,000)")
    parser.add_argument("--repeat", type=positive, default=3, help="the fastest run counts (default: 3)")
    parser.add_argument("--json", type=Path, help="also write the results there")
    options = parser.parse_args(argv)
    measured = measure(WALKS, options.steps, options.repeat)
    sys.stdout.write(table(measured))
    if options.json:
        with tempfile.TemporaryDirectory(prefix="bamquery-recursion-") as folder:
            machine = describe_machine(Path(folder))
        results = [
            {"query": one.name, "bamquery_seconds": one.bamquery, "duckdb_seconds": one.duckdb}
            for one in measured
        ]
        report = {"machine": machine, "steps": options.steps, "repeat": options.repeat, "results": results}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


def measure(walks: Sequence[Walk], steps: int, repeat: int) -> list[Measured]:
    """Each query in both systems, with one thread."""
    found = []
    with connect(device="cpu", threads=1) as ours:
        theirs = _duckdb()
        for setup in dict.fromkeys(walk.setup for walk in walks):
            ours.sql(setup)
            if theirs is not None:
                theirs.execute(setup)
        for walk in walks:
            count = walk.steps(steps)
            sql = walk.statement(count)
            mine = _fastest_seconds(lambda text: ours.sql(text).fetchall(), sql, repeat) / count
            other = None
            if theirs is not None:
                other = _fastest_seconds(lambda text: theirs.execute(text).fetchall(), sql, repeat) / count
            found.append(Measured(walk.name, mine, other))
    return found


def _duckdb() -> Any:
    """A connection of one thread, or None where it is not installed."""
    if importlib.util.find_spec("duckdb") is None:
        return None
    import duckdb  # noqa: PLC0415 (not a dependency)

    return duckdb.connect(config={"threads": 1})


def _fastest_seconds(work: Callable[[str], object], sql: str, repeat: int) -> float:
    seconds = []
    for run in range(repeat + 1):  # the first imports what the query needs
        began = time.process_time()
        work(f"{sql}{' ' * run}")
        seconds.append(time.process_time() - began)
    return min(seconds[1:])


def table(measured: Sequence[Measured]) -> str:
    """Microseconds a step."""
    lines = ["| a step of | µs | DuckDB, µs | times |", "|---|---|---|---|"]
    for one in measured:
        other = "" if one.duckdb is None else f"{one.duckdb * 1e6:.1f}"
        times = f"{one.bamquery / one.duckdb:.1f}" if one.duckdb else ""
        lines.append(f"| {one.name} | {one.bamquery * 1e6:.1f} | {other} | {times} |")
    return "\n".join(lines) + "\n"
