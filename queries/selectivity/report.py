"""Results as tables for people and as JSON for programs."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bamquery.queries.measuring.machine import describe_machine, device_line
from bamquery.queries.report import duration
from bamquery.queries.selectivity.measure import Curve, Point, Result, Timing, query


def tables_of(result: Result) -> RenderableType:
    """A table for each order: median times by share and strategy, the one that auto chose in green."""
    parts: list[RenderableType] = [Text(f"BamQuery on {device_line(result.device)}", style="bold")]
    parts += [Text(f"  {note}", style="dim") for note in result.notes]
    for curve in result.curves:
        parts += [
            Text(f"{curve.table}: {curve.rows:,} rows, medians, by {curve.condition}", style="bold"),
            _table(result, curve),
        ]
    return Group(*parts, *(Text(line, style="bold red") for line in complaints(result)))


def _table(result: Result, curve: Curve) -> Table:
    table = Table()
    for heading in ("share", "miles", "rows", *result.plan.strategies):
        table.add_column(heading, justify="right")
    table.add_column("auto / best", justify="right")
    table.add_column("chosen")
    for point in curve.points:
        cells = [Text(duration(timing.median), style=_style(point, timing)) for timing in point.timings]
        ratio = "" if point.regret is None else f"{point.regret:.2f}"
        share = point.matching / curve.rows if curve.rows else 0.0
        table.add_row(
            f"{share:.4%}",
            f"{point.threshold:g}",
            f"{point.matching:,}",
            *cells,
            ratio,
            point.chosen_strategy,
        )
    return table


def _style(point: Point, timing: Timing) -> str:
    if not timing.right:
        return "bold red"
    return "green" if timing.strategy == point.chosen_strategy else ""


def complaints(result: Result) -> list[str]:
    """One line for each wrong answer."""
    return [
        f"{curve.table} by {curve.condition}, at least {point.threshold:g} miles: "
        f"{timing.strategy} and {result.reference} differ"
        for curve in result.curves
        for point in curve.points
        for timing in point.timings
        if not timing.right
    ]


def json_of(result: Result, command: str) -> dict[str, Any]:
    """Everything that was measured, with the machine and the command line."""
    return {
        "command": command,
        "machine": describe_machine(result.plan.database),
        "device": {"ran_on": result.device, "notes": list(result.notes)},
        "settings": dict(result.plan.settings),
        "query": query("...", "..."),
        "repeat": result.plan.repeat,
        "reference": result.reference,
        "right": result.right,
        "complaints": complaints(result),
        "curves": [
            {
                "table": curve.table,
                "condition": curve.condition,
                "table_rows": curve.rows,
                "points": [_json_of_point(point) for point in curve.points],
            }
            for curve in result.curves
        ],
    }


def _json_of_point(point: Point) -> dict[str, Any]:
    return {
        "share_wanted": point.wanted,
        "miles": point.threshold,
        "matching_rows": point.matching,
        "chosen": point.chosen_strategy,
        "auto_over_best": point.regret,
        "strategies": [
            {
                "strategy": timing.strategy,
                "right": timing.right,
                "seconds": list(timing.seconds),
                "median": timing.median,
                "bytes_needed": timing.bytes_needed,
                "bytes_read": timing.bytes_read,
                "ran": timing.ran,
            }
            for timing in point.timings
        ],
    }
