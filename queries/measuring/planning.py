"""`bamquery bench planning`: how long plans take to make, over families of statements that grow.

A statement is parsed, bound, optimised and lowered to operators, and not run; DuckDB's EXPLAIN stands beside
it, which writes its plan as text besides. Times are processor time of the whole process, so that what else
the machine does counts little. Growth is the exponent between the two largest sizes: 1 is linear.
"""

# ruff: noqa: S608 (statements are what it makes; nothing of them comes from outside)

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bamquery.connection.connection import connect
from bamquery.queries.arguments import positive
from bamquery.queries.measuring.machine import describe_machine

_SETUP: Final = "CREATE TABLE t AS SELECT range AS x, range AS y FROM range(3)"
_MOST_COLUMNS: Final = 20_000
_MOST_FILES: Final = 5_000


@dataclass(frozen=True)
class Family:
    """Statements of one kind: `statement` makes the one of a size, with `{folder}` where files are."""

    name: str
    sizes: tuple[int, ...]
    statement: Callable[[int], str]
    parameters: Callable[[int], list[int] | None] = lambda size: None


@dataclass
class Measured:
    """Seconds by size, of each system."""

    family: Family
    bamquery: dict[int, float] = field(default_factory=dict)
    duckdb: dict[int, float] = field(default_factory=dict)


def _levels(count: int, level: str) -> str:
    """A statement of CTEs, `level` over the one before with `{0}` its number and `{1}` the number before."""
    made = "".join(f", c{i} AS ({level.format(i, i - 1)})" for i in range(1, count))
    return f"WITH c0 AS (SELECT x AS a FROM t){made} SELECT * FROM c{count - 1}"


_LENGTHS: Final = (100, 400, 1600)
FAMILIES: Final = (
    Family("AND", _LENGTHS, lambda n: f"SELECT 1 FROM t WHERE {' AND '.join(f'x <> {i}' for i in range(n))}"),
    Family(
        "OR",
        _LENGTHS,
        lambda n: f"SELECT 1 FROM t WHERE {' OR '.join(f'x > {i} AND y < {i}' for i in range(n))}",
    ),
    Family(
        "IN list",
        (1000, 10_000, 100_000),
        lambda n: f"SELECT 1 FROM t WHERE x IN ({', '.join(map(str, range(n)))})",
    ),
    Family(
        "CASE",
        _LENGTHS,
        lambda n: f"SELECT CASE x {' '.join(f'WHEN {i} THEN y' for i in range(n))} END FROM t",
    ),
    Family(
        "wide SELECT",
        _LENGTHS,
        lambda n: f"SELECT {', '.join(f'x + {i} AS c{i}' for i in range(n))} FROM t",
    ),
    Family("UNION ALL", (50, 200, 800), lambda n: " UNION ALL ".join(f"SELECT {i}" for i in range(n))),
    Family("parentheses", (25, 50, 100), lambda n: f"SELECT {'(1 + ' * n}x{')' * n} FROM t"),
    Family("subqueries", (20, 40, 80), lambda n: f"SELECT x FROM {'(SELECT x + 1 AS x FROM ' * n}t{')' * n}"),
    Family(
        "joins of one row",
        (10, 40, 80, 300),
        lambda n: f"SELECT count(*) FROM {', '.join(f'(SELECT {i} AS a{i}) t{i}' for i in range(n))}",
    ),
    Family("CTEs", (25, 50, 100), lambda n: _levels(n, "SELECT a + 1 AS a FROM c{1}")),
    Family("CTEs, each twice", (24, 48, 96), lambda n: _levels(n, "SELECT p.a FROM c{1} p, c{1} q")),
    Family(
        "CTEs with conditions",
        (25, 50, 100),
        lambda n: _levels(n, "SELECT a + 1 AS a FROM c{1} WHERE a <> {0}"),
    ),
    Family(
        "DISTINCT with conditions",
        (80, 160, 320),
        lambda n: _levels(n, "SELECT DISTINCT a FROM c{1} WHERE a <> {0}"),
    ),
    Family(
        "windows with conditions",
        (80, 160, 320),
        lambda n: _levels(n, "SELECT a, count(*) OVER (PARTITION BY a) AS b{0} FROM c{1} WHERE a <> {0}"),
    ),
    Family(
        "VALUES",
        _LENGTHS,
        lambda n: f"SELECT * FROM (VALUES {', '.join(f'({i}, {i})' for i in range(n))}) v",
    ),
    Family(
        "ROLLUP",
        (10, 40, 80),
        lambda n: f"SELECT count(*) FROM t GROUP BY ROLLUP ({', '.join(f'x + {i}' for i in range(n))})",
    ),
    Family(
        "parameters",
        _LENGTHS,
        lambda n: f"SELECT * FROM (VALUES {', '.join(['(?, ?)'] * n)}) v",
        lambda n: list(range(2 * n)),
    ),
    Family("wide table, count", (1250, 5000, _MOST_COLUMNS), lambda n: f"SELECT count(*) FROM wide{n}"),
    Family("wide table, a column", (1250, 5000, _MOST_COLUMNS), lambda n: f"SELECT c{n // 2} FROM wide{n}"),
    Family("wide table, all", (1250, 5000, _MOST_COLUMNS), lambda n: f"SELECT * FROM wide{n}"),
    Family("CSV files", (300, 1250, _MOST_FILES), lambda n: f"SELECT count(*) FROM '{{folder}}/{n}/*.csv'"),
)


def main(argv: Sequence[str]) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bamquery bench planning", description=__doc__)
    parser.add_argument("--families", nargs="+", metavar="FAMILY", help="as the table has them; else all")
    parser.add_argument("--repeat", type=positive, default=3, help="the fastest run counts (default: 3)")
    parser.add_argument("--most", type=positive, help="the largest size")
    parser.add_argument("--json", type=Path, help="also write the results there")
    parser.add_argument("--markdown", type=Path, help="also write the table there")
    parser.add_argument(
        "--tpch", metavar="DB", type=Path, help="TPC-H's queries instead, over a database of `bench sql`"
    )
    options = parser.parse_args(argv)
    if options.tpch is not None:
        from bamquery.queries.measuring.query_planning import measure_queries  # noqa: PLC0415 (few ask)

        shown = measure_queries(options.tpch, options.repeat, options.json)
        sys.stdout.write(shown)
        if options.markdown:
            options.markdown.write_text(shown, encoding="utf-8")
        return 0
    known = {family.name for family in FAMILIES}
    if unknown := [name for name in options.families or () if name not in known]:
        parser.error(f"there is no family {unknown[0]!r}: there are {', '.join(sorted(known))}")
    chosen = [family for family in FAMILIES if not options.families or family.name in options.families]
    with tempfile.TemporaryDirectory(prefix="bamquery-planning-") as folder:
        measured = measure(chosen, options.repeat, Path(folder), options.most)
        machine = describe_machine(Path(folder))
    shown = table(measured)
    sys.stdout.write(shown)
    if options.json:
        results = [
            {"family": one.family.name, "bamquery_seconds": one.bamquery, "duckdb_seconds": one.duckdb}
            for one in measured
        ]
        report = {"machine": machine, "repeat": options.repeat, "results": results}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(shown, encoding="utf-8")
    return 0


def measure(chosen: Sequence[Family], repeat: int, folder: Path, most: int | None = None) -> list[Measured]:
    """The fastest of each family's runs, up to a size."""
    found = [Measured(family) for family in chosen]
    with connect(device="cpu", threads=1) as ours:
        theirs = _duckdb()

        def plan(sql: str, values: Sequence[int] | None) -> None:
            ours.sql(sql, values).run().close()

        def explain(sql: str, values: Sequence[int] | None) -> None:
            theirs.execute(f"EXPLAIN {sql}", values).fetchall()

        ours.sql(_SETUP)
        if theirs is not None:
            theirs.execute(_SETUP)
        for one in found:
            sizes = [size for size in one.family.sizes if most is None or size <= most]
            for size in sizes:
                _prepare(one.family, size, folder, ours, theirs)
                sql, values = one.family.statement(size).format(folder=folder), one.family.parameters(size)
                one.bamquery[size] = _fastest_seconds(plan, sql, values, repeat)
                if theirs is not None:
                    one.duckdb[size] = _fastest_seconds(explain, sql, values, repeat)
                sys.stderr.write(f"{one.bamquery[size] * 1e3:9.1f} ms  {one.family.name}, {size}\n")
    return found


def _duckdb() -> Any:
    """A connection of one thread, or None where it is not installed."""
    if importlib.util.find_spec("duckdb") is None:
        return None
    import duckdb  # noqa: PLC0415 (not a dependency)

    return duckdb.connect(config={"threads": 1, "max_expression_depth": 100_000})


def _prepare(family: Family, size: int, folder: Path, ours: Any, theirs: Any) -> None:
    """Tables and files of the size, where the family has them."""
    if family.name.startswith("wide table"):
        columns = ", ".join(f"c{i} BIGINT" for i in range(size))
        ours.sql(f"CREATE TABLE IF NOT EXISTS wide{size} ({columns})")
        if theirs is not None:
            theirs.execute(f"CREATE TABLE IF NOT EXISTS wide{size} ({columns})")
    if family.name == "CSV files":
        (folder / str(size)).mkdir()
        for i in range(size):
            (folder / str(size) / f"{i}.csv").write_text(f"a,b\n{i},{i}\n", encoding="utf-8")


def _fastest_seconds(
    work: Callable[[str, Sequence[int] | None], None], sql: str, values: Sequence[int] | None, repeat: int
) -> float:
    """Seconds of the fastest run; each of a text of its own, as a statement's plan may be kept."""
    seconds = []
    for run in range(repeat + 1):  # the first imports what the family needs
        began = time.process_time()
        work(f"{sql}{' ' * run}", values)
        seconds.append(time.process_time() - began)
    return min(seconds[1:])


def exponent(seconds: dict[int, float]) -> float | None:
    """The e of time ~ size^e between the two largest sizes; None where there is one only."""
    pairs = list(itertools.pairwise(sorted(seconds.items())))
    if not pairs:
        return None
    (small, before), (large, after) = pairs[-1]
    return math.log(max(after, 1e-9) / max(before, 1e-9)) / math.log(large / small)


def table(measured: Sequence[Measured]) -> str:
    """Milliseconds at each size, and growth."""
    lines = ["| | sizes | ms | growth | DuckDB, ms | growth |", "|---|---|---|---|---|---|"]
    for one in measured:
        cells = [one.family.name, " · ".join(f"{size:,}" for size in one.bamquery)]
        for seconds in (one.bamquery, one.duckdb):
            growth = exponent(seconds)
            cells += [" · ".join(f"{value * 1e3:.1f}" for value in seconds.values())]
            cells += ["" if growth is None else f"{growth:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
