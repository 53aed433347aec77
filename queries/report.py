"""Results of a run as a table for people and as JSON for programs."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bamquery.queries.measuring.machine import describe_machine, device_line
from bamquery.queries.runner import QuestionResult, RunResult, Timing


def table_of(result: RunResult) -> RenderableType:
    """BamQuery's answers, times and bytes; times beside others'; and lines that say what is wrong.

    Amplification ("ampl.") is bytes read over bytes needed.
    """
    matching = result.questions[0].matching_rows
    share = matching / result.rows if result.rows else 0.0
    caches = "cold caches" if result.plan.cold else "warm caches"
    title = f"{result.plan.table}: {result.rows:,} rows, {matching:,} of at least 30 miles ({share:.3%})"
    parts: list[RenderableType] = [Text(f"{title}, {caches}", style="bold")]
    parts += [Text(f"BamQuery on {device_line(result.device)}", style="bold")]
    parts += [Text(f"  {note}", style="dim") for note in result.notes]
    parts.append(_own_table(result))
    if len(result.questions[0].timings) > 1:
        parts += [Text("fastest / median; bytes read or copied over bytes needed", style="bold")]
        parts.append(_comparison(result))
    return Group(*parts, *(Text(line, style="bold red") for line in complaints(result)))


def _own_table(result: RunResult) -> Table:
    table = Table()
    table.add_column("query", style="bold")
    for heading in ("$/mile", "fastest", "median", "needed", "read", "ampl."):
        table.add_column(heading, justify="right")
    table.add_column(f"= {result.reference}", justify="center")
    for asked in result.questions:
        timing, io = asked.timings[0], asked.io
        value = timing.answer.value
        table.add_row(
            asked.question.name.upper(),
            "none" if value is None else f"{value:.4f}",
            duration(timing.best),
            duration(timing.median),
            size(io.needed) if io else "",
            size(io.read) if io else "",
            f"{io.amplification:.3f}" if io and io.amplification is not None else "",
            _mark(asked, timing),
        )
    return table


def _comparison(result: RunResult) -> Table:
    table = Table()
    table.add_column("query", style="bold")
    for timing in result.questions[0].timings:
        table.add_column(timing.system, justify="right")
    for asked in result.questions:
        cells = []
        for timing in asked.timings:
            cell = Text(_pair(timing.best, timing.median))
            ratio = asked.amplification(timing)
            if ratio is not None:
                cell.append(f"; {ratio:.3g}", style="dim")
            if timing.system in asked.wrong:
                cell.append(" ✗", style="bold red")
            cells.append(cell)
        table.add_row(asked.question.name.upper(), *cells)
    return table


def _mark(asked: QuestionResult, timing: Timing) -> Text:
    return Text("✗", style="bold red") if timing.system in asked.wrong else Text("✓", style="green")


def _pair(first: float, second: float) -> str:
    """Two durations, the unit once where it is the same."""
    left, right = duration(first), duration(second)
    same = left.split()[1] == right.split()[1]
    return f"{left.split()[0] if same else left} / {right}"


def complaints(result: RunResult) -> list[str]:
    """One line for each wrong answer."""
    lines = []
    for asked in result.questions:
        for timing in asked.timings:
            if timing.system in asked.wrong:
                lines.append(
                    f"{asked.question.name.upper()}: {timing.system} says {timing.answer.value!r}, "
                    f"{result.reference} {asked.expected!r}"
                )
    if result.wrong_count is not None:
        lines.append(
            f"BamQuery counts {result.wrong_count:,} trips of at least 30 miles, "
            f"{result.reference} {result.questions[0].matching_rows:,}"
        )
    return lines


def duration(seconds: float) -> str:
    """`834 µs`, `12.3 ms`, `4.56 s`."""
    if seconds >= 1:
        return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:.0f} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def size(count: int) -> str:
    """Bytes with three digits: `953 B`, `15.3 MB`."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:,.3g} TB"


def json_of(result: RunResult, command: str) -> dict[str, Any]:
    """Everything that was measured, with the machine and the command line."""
    plan = result.plan
    return {
        "command": command,
        "machine": describe_machine(plan.database),
        "table": plan.table,
        "table_rows": result.rows,
        "table_version": result.version,
        "device": {"ran_on": result.device, "notes": list(result.notes)},
        "memory": dict(result.memory),
        "opening_seconds": dict(result.opening),
        "settings": dict(plan.settings),
        "cold": plan.cold,
        "caches_dropped_by": result.dropped or None,
        "repeat": plan.repeat,
        "reference": result.reference,
        "right": result.right,
        "complaints": complaints(result),
        "queries": [_json_of_question(asked) for asked in result.questions],
    }


def _json_of_question(asked: QuestionResult) -> dict[str, Any]:
    io, profile = asked.io, asked.timings[0].answer.profile
    return {
        "query": asked.question.name,
        "matching_rows": asked.matching_rows,
        "expected": asked.expected,
        "bytes_needed": io.needed if io else None,
        "bytes_read": io.read if io else None,
        "amplification": io.amplification if io else None,
        "systems": [
            {
                "system": timing.system,
                "answer": timing.answer.value,
                "right": timing.system not in asked.wrong,
                "seconds": list(timing.seconds),
                "fastest": timing.best,
                "median": timing.median,
                "first": timing.first,
                "bytes_moved": timing.moved,
                "amplification": asked.amplification(timing),
            }
            for timing in asked.timings
        ],
        "profile": profile.to_dict() if profile else None,
    }
