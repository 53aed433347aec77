"""What `bamquery bench sql` measured, as a table for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bamquery.queries.measuring.machine import describe_machine
from bamquery.queries.report import duration
from bamquery.queries.speed.measure import Timing, geometric_mean


def line_of(timing: Timing) -> str:
    """One query while the others are still to come."""
    name = f"{timing.query.suite}/{timing.query.name}"
    if timing.factor is None:
        return f"{name}: {timing.problem.splitlines()[0]}"
    wrong = f"  WRONG: {timing.problem}" if timing.problem else ""
    ours, theirs = duration(min(timing.ours)), duration(min(timing.theirs))
    return f"{name}: {ours}, DuckDB {theirs}, factor {timing.factor:.2f}{wrong}"


def table_of(timings: Sequence[Timing]) -> RenderableType:
    """All queries, the mean and the worst of each suite, and what is refused or wrong."""
    table = Table()
    table.add_column("query", style="bold")
    for heading in ("rows", "BamQuery", "DuckDB", "factor"):
        table.add_column(heading, justify="right")
    for timing in timings:
        name = f"{timing.query.suite}/{timing.query.name}"
        if timing.factor is None:
            table.add_row(name, f"{timing.rows:,}", "refused" if timing.refused else "failed", "", "")
            continue
        best = duration(min(timing.ours)), duration(min(timing.theirs))
        table.add_row(name, f"{timing.rows:,}", *best, f"{timing.factor:.2f}")
    lines = [Text(line) for line in summary(timings)]
    wrong = [Text(line, style="bold red") for line in complaints(timings)]
    return Group(table, *lines, *wrong)


def summary(timings: Sequence[Timing]) -> list[str]:
    """One line for each suite, and one for all."""
    lines = []
    suites = list(dict.fromkeys(timing.query.suite for timing in timings))
    for suite in [*suites, *([] if len(suites) == 1 else ["all"])]:
        known = {
            f"{t.query.suite}/{t.query.name}": t.factor
            for t in timings
            if suite in ("all", t.query.suite) and t.factor is not None
        }
        if known:
            worst = max(known, key=lambda name: known[name])
            mean = geometric_mean(list(known.values()))
            lines.append(f"{suite}: geometric mean {mean:.2f}, worst {known[worst]:.2f} ({worst})")
    return lines


def complaints(timings: Sequence[Timing]) -> list[str]:
    """One line for each query that is refused, fails, or has another answer."""
    return [f"{t.query.suite}/{t.query.name}: {t.problem}" for t in timings if t.problem]


def json_of(timings: Sequence[Timing], folder: Path, command: str, how: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that was measured, with the machine, the command line, and the device, threads and runs."""
    return {
        "command": command,
        "machine": describe_machine(folder),
        **how,
        "summary": summary(timings),
        "complaints": complaints(timings),
        "queries": [
            {
                "suite": t.query.suite,
                "query": t.query.name,
                "rows": t.rows,
                "bamquery_seconds": list(t.ours),
                "duckdb_seconds": list(t.theirs),
                "factor": t.factor,
                "refused": t.refused,
                "problem": t.problem,
            }
            for t in timings
        ],
    }
