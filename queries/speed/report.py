"""What `bamquery bench sql` measured, as a table for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bamquery.engine.human_units import ratio
from bamquery.queries.measuring.machine import describe_machine
from bamquery.queries.report import duration, size
from bamquery.queries.speed.floors import Rates
from bamquery.queries.speed.measure import SystemTiming, Timing, geometric_mean
from bamquery.queries.speed.systems.names import RESIDENT

_WHOLE = 100
"""From which on times a floor are shown without a fraction."""


@dataclass(frozen=True)
class LineUp:
    """Who was asked.

    Attributes:
        own: names of BamQuery's systems.
        peers: names of the others.
    """

    own: tuple[str, ...]
    peers: tuple[str, ...]


def line_of(timing: Timing, line_up: LineUp) -> str:
    """One query while the others are still to come."""
    parts = []
    for one in timing.systems:
        best = one.problem.splitlines()[0] if one.best is None and one.problem else _cell(one)
        wrong = f" WRONG: {one.problem}" if one.problem and one.best is not None else ""
        parts.append(f"{one.system} {best}{wrong}")
    factors = [timing.factor(own, peer) for own in line_up.own for peer in line_up.peers[:1]]
    shown = [f"{factor:.2f}" for factor in factors if factor is not None]
    return f"{timing.name}: {'; '.join(parts)}" + (f"; factor {' and '.join(shown)}" if shown else "")


def table_of(timings: Sequence[Timing], line_up: LineUp) -> RenderableType:
    """All queries, the means and the worst of each suite, and what is refused or wrong.

    Beside each time of BamQuery's is its floor, and how many times that it took; factors are against the
    first peer. `≠` stands before the time of a wrong answer.
    """
    table = Table()
    table.add_column("query", style="bold", no_wrap=True)
    for heading in ("rows", *_headings(line_up)):
        table.add_column(heading, justify="right")
    for timing in timings:
        cells = [timing.name, "" if timing.rows is None else f"{timing.rows:,}"]
        for system in line_up.own:
            cells += [_cell(timing.timing_of(system)), *_floor_cells(timing.timing_of(system))]
        cells += [_cell(timing.timing_of(system)) for system in line_up.peers]
        for system in line_up.own:
            factor = timing.factor(system, line_up.peers[0])
            cells.append("" if factor is None else f"{factor:.2f}")
        table.add_row(*cells)
    lines = [Text(line) for line in summary(timings, line_up)]
    wrong = [Text(line, style="bold red") for line in complaints(timings, line_up.own)]
    others = [Text(line, style="yellow") for line in complaints(timings, line_up.peers)]
    return Group(table, *lines, *wrong, *others)


def _headings(line_up: LineUp) -> list[str]:
    headings = []
    for system in line_up.own:
        headings += [system, "floor", "×"]
    headings += line_up.peers
    several = len(line_up.own) > 1
    return headings + [f"factor, {name.split(', ')[1]}" if several else "factor" for name in line_up.own]


def _cell(timing: SystemTiming | None) -> str:
    if timing is None:
        return ""
    if timing.best is None:
        return "refused" if timing.refused else "failed"
    return f"{'≠ ' if timing.problem else ''}{duration(timing.best)}"


def _floor_cells(timing: SystemTiming | None) -> tuple[str, str]:
    if timing is None or timing.best is None or timing.floor is None:
        return "", ""
    seconds = timing.floor.seconds
    if not seconds:
        return duration(seconds), ""
    times = timing.best / seconds
    return duration(seconds), f"{times:.1f}" if times < _WHOLE else f"{times:,.0f}"


def summary(timings: Sequence[Timing], line_up: LineUp) -> list[str]:
    """For each suite, and for all, one line for each of BamQuery's systems beside each peer."""
    lines = []
    suites = list(dict.fromkeys(timing.query.suite for timing in timings))
    for suite in [*suites, *([] if len(suites) == 1 else ["all"])]:
        asked = sum(suite in ("all", timing.query.suite) for timing in timings)
        for own in line_up.own:
            for peer in line_up.peers:
                known = {
                    timing.name: factor
                    for timing in timings
                    if suite in ("all", timing.query.suite)
                    and (factor := timing.factor(own, peer)) is not None
                }
                if known:
                    worst = max(known, key=lambda name: known[name])
                    mean = geometric_mean(list(known.values()))
                    who = f"{own} / {peer}, {len(known)} of {asked} queries"
                    lines.append(
                        f"{suite}: {who}: geometric mean {mean:.2f}, worst {known[worst]:.2f} ({worst})"
                    )
    return lines + _say_what_was_read(timings)


def _say_what_was_read(timings: Sequence[Timing]) -> list[str]:
    """Of columns that should stay in a GPU's memory, and do not: too large, or seldom read whole."""
    floors = [one.floor for timing in timings if (one := timing.timing_of(RESIDENT)) is not None]
    read = [floor.read for floor in floors if floor is not None and floor.read]
    if not read:
        return []
    return [f"{RESIDENT}: {len(read)} of {len(timings)} queries read {size(sum(read))} of files in all"]


def complaints(timings: Sequence[Timing], systems: Sequence[str]) -> list[str]:
    """One line for each query that one of these systems refuses, fails, or has another answer to."""
    return [
        f"{timing.name}: {one.system}: {one.problem}"
        for timing in timings
        for one in timing.systems
        if one.problem and one.system in systems
    ]


def json_of(
    timings: Sequence[Timing],
    line_up: LineUp,
    rates: Rates,
    folder: Path,
    how: Mapping[str, Any],
) -> dict[str, Any]:
    """Everything that was measured, with the machine, its rates in bytes a second, and how it was asked."""
    return {
        **how,
        "machine": describe_machine(folder),
        "rates": asdict(rates),
        "summary": summary(timings, line_up),
        "complaints": complaints(timings, line_up.own),
        "complaints_of_peers": complaints(timings, line_up.peers),
        "queries": [
            {
                "suite": timing.query.suite,
                "query": timing.query.name,
                "rows": timing.rows,
                "texts": list(timing.texts),
                "systems": [_json_of_system(one) for one in timing.systems],
            }
            for timing in timings
        ],
    }


def _json_of_system(timing: SystemTiming) -> dict[str, Any]:
    floor, best = timing.floor, timing.best
    return {
        "system": timing.system,
        "seconds": list(timing.seconds),
        "fastest": best,
        "floor": None if floor is None else asdict(floor),
        "times_floor": None if floor is None or best is None else ratio(best, floor.seconds),
        "refused": timing.refused,
        "problem": timing.problem,
    }
