"""`bamquery bench spill`: queries whose rows and groups do not fit `memory_limit`, each in its own process.

Answers are checked: keys are permutations of whole numbers, so what comes out is known. A process's peak is
that of its anonymous pages, which leaves out what files it has mapped or read.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bamquery.connection.connection import Connection, connect
from bamquery.engine.human_units import human_bytes
from bamquery.queries.measuring.machine import describe_machine

_ROWS: Final = 100_000_000
_BATCH: Final = 1 << 18
_STEP: Final = 2_654_435_761
"""A prime: its multiples modulo any smaller number of rows are a permutation of them."""
_SAMPLE_SECONDS: Final = 0.01

QUERIES: Final = {
    "order": ("ORDER BY of {rows:,} rows", "SELECT k, v FROM numbers ORDER BY k"),
    "group": (
        "GROUP BY with {half:,} groups of {rows:,} rows",
        "SELECT k % {half} AS g, count(*) AS n, sum(v) AS s FROM numbers GROUP BY g",
    ),
    "join": (
        "join of two tables of {half:,} rows",
        "SELECT count(*) AS n, sum(a.v - b.v) AS s, sum(a.k) AS k FROM one AS a JOIN other AS b ON a.k = b.k",
    ),
}


def main(argv: Sequence[str]) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bamquery bench spill", description=__doc__.split("\n\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="1: 100 million rows, 50 million groups")
    parser.add_argument("--memory-limit", default="1GiB", help="the setting")
    parser.add_argument("--threads", type=int, help="the setting")
    parser.add_argument("--folder", type=Path, help="where the database is made, and removed again")
    parser.add_argument("--queries", nargs="+", choices=[*QUERIES], default=[*QUERIES])
    parser.add_argument("--json", type=Path, help="also write the results there")
    parser.add_argument("--markdown", type=Path, help="also write the table there")
    parser.add_argument("--run", nargs=2, metavar=("DB", "QUERY"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    rows = int(options.scale * _ROWS) // 2 * 2
    settings = {"memory_limit": options.memory_limit, "threads": options.threads}
    if options.run:
        path, query = options.run
        sys.stdout.write(json.dumps(_run(Path(path), query, rows, settings)) + "\n")
        return 0
    results = []
    with tempfile.TemporaryDirectory(prefix="bamquery-spill-", dir=options.folder) as folder:
        path = Path(folder) / "db"
        _load(path, rows, options.queries)
        for query in options.queries:
            results.append(_run_in_process(path, query, argv))
            sys.stderr.write(f"{results[-1]}\n")
    table = _table(results)
    sys.stdout.write(table)
    if options.json:
        report = {
            "machine": describe_machine(options.folder or Path(tempfile.gettempdir())),
            "rows": rows,
            **settings,
            "results": results,
        }
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    if options.markdown:
        options.markdown.write_text(table)
    return 0


def _load(path: Path, rows: int, queries: Sequence[str]) -> None:
    """Tables of permuted keys: `numbers` of all rows, `one` and `other` of half as many."""
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    wanted = {"numbers": (rows, 1, not {"order", "group"}.isdisjoint(queries))}
    wanted |= {name: (rows // 2, power, "join" in queries) for name, power in (("one", 1), ("other", 2))}
    with connect(path) as connection:
        for name, (count, power, needed) in wanted.items():
            if needed:
                batches = _batches(count, pow(_STEP, power, count), schema)
                connection.load(name, pa.RecordBatchReader.from_batches(schema, batches))


def _batches(rows: int, step: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, _BATCH):
        places = np.arange(start, min(start + _BATCH, rows), dtype=np.uint64)
        keys: Any = pa.array((places * np.uint64(step) % np.uint64(rows)).astype(np.int64))
        values: Any = pa.array(keys.to_numpy() * 3)
        yield pa.record_batch([keys, values], schema.names)


def _run_in_process(path: Path, query: str, argv: Sequence[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "bamquery", "bench", "spill", *argv, "--run", str(path), query]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _run(path: Path, query: str, rows: int, settings: dict[str, Any]) -> dict[str, Any]:
    """One query, its answer checked, in this process."""
    title, sql = (text.format(rows=rows, half=rows // 2) for text in QUERIES[query])
    with connect(path, **settings) as connection, _peak() as peak:
        began = time.perf_counter()
        profile = _CHECKS[query](connection, sql, rows)
        seconds = time.perf_counter() - began
    return {
        "query": query,
        "title": title,
        "sql": sql,
        "seconds": seconds,
        "peak": peak[0],
        "held": profile.peak_memory,
        "spilled": profile.spilled,
    }


def _check_order(connection: Connection, sql: str, rows: int) -> Any:
    relation = connection.sql(sql)
    place = 0
    for batch in relation.to_batches():
        keys, values = (column.to_numpy() for column in batch.columns)
        expected = np.arange(place, place + batch.num_rows)
        _expect(bool((keys == expected).all() and (values == 3 * expected).all()))
        place += batch.num_rows
    _expect(place == rows)
    return relation.profile


def _check_group(connection: Connection, sql: str, rows: int) -> Any:
    relation = connection.sql(sql)
    half = rows // 2
    groups = total = 0
    for batch in relation.to_batches():
        keys, counts = (batch.column(i).to_numpy() for i in range(2))
        sums = batch.column(2).cast(pa.int64()).to_numpy()
        # Each group has the keys g and g + half.
        _expect(bool((counts == 2).all() and (sums == 3 * (2 * keys + half)).all()))
        groups += batch.num_rows
        total += int(keys.sum())
    _expect(groups == half and total == half * (half - 1) // 2)
    return relation.profile


def _check_join(connection: Connection, sql: str, rows: int) -> Any:
    relation = connection.sql(sql)
    half = rows // 2
    (found,) = relation.fetchall()
    _expect(tuple(map(int, found)) == (half, 0, half * (half - 1) // 2))
    return relation.profile


_CHECKS: Final = {"order": _check_order, "group": _check_group, "join": _check_join}


def _expect(right: bool) -> None:
    if not right:
        raise SystemExit("a wrong answer")


@contextmanager
def _peak() -> Iterator[list[int]]:
    """Most bytes of anonymous pages so far, sampled."""
    most = [0]
    over = threading.Event()

    def sample() -> None:
        while not over.wait(_SAMPLE_SECONDS):
            most[0] = max(most[0], _anonymous())

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join()


def _anonymous() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    return 0


def _table(results: Sequence[dict[str, Any]]) -> str:
    lines = [
        "| query | seconds | peak of the process | held by operators | written to files |",
        "|---|---|---|---|---|",
    ]
    for one in results:
        sizes = " | ".join(human_bytes(one[name]) for name in ("peak", "held", "spilled"))
        lines.append(f"| {one['title']} | {one['seconds']:.1f} | {sizes} |")
    return "\n".join(lines) + "\n"
