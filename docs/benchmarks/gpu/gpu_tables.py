"""Prints the measurements beside this file (`gpu-*.json`, which record.sh records) as Markdown tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).resolve().parents[1] / other) for other in ("io", "taxi")]

from io_tables import describe as describe_gpus
from taxi_tables import table

FOLDER = Path(__file__).resolve().parent
RUNS = {
    "warm-maps-off": "warm, without zone maps",
    "warm-maps-on": "warm, with zone maps",
    "first-maps-off": "a process of its own, kernels cached on disk, without zone maps",
    "first-maps-on": "a process of its own, kernels cached on disk, with zone maps",
    "cold-mapped": "cold disk, through the page cache",
    "cold-direct": "cold disk, direct reads",
}
PINNED, PARQUET, FILTERS, DUCKDB = (
    "cuDF, pinned memory",
    "cuDF read_parquet",
    "cuDF read_parquet, filters",
    "DuckDB",
)
Run = dict[str, Any]


def main(folder: Path = FOLDER) -> int:
    """Print everything; 1 if an answer is wrong."""
    runs = {
        path.stem.removeprefix("gpu-"): json.loads(path.read_text("utf-8"))
        for path in sorted(folder.glob("gpu-*.json"))
    }
    lines = ["# Queries on a GPU: all measurements", ""]
    lines += [
        "Median (fastest) in milliseconds. Written by `gpu/gpu_tables.py` from JSON files beside it; `gpu.md`"
    ]
    lines += ["says what they mean.", ""]
    if runs:
        lines += [
            machine_line(
                next(iter(run["machine"] for run in runs.values() if "libraries" in run["machine"]), {})
            ),
            "",
        ]
    lines += ["## What was to be shown", "", *targets(runs), ""]
    for name, description in RUNS.items():
        if name in runs:
            lines += section(runs[name], description)
    for name, run in runs.items():
        if name.startswith("selectivity"):
            lines += selectivity(name, run)
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if all(run.get("right", True) for run in runs.values()) else 1


def section(run: Run, description: str) -> list[str]:
    """One run: device, command, table."""
    lines = [f"## {description[0].upper()}{description[1:]}", ""]
    lines += [f"{run['table_rows']:,} rows, {run['queries'][0]['matching_rows']:,} of at least 30 miles, on"]
    lines += [f"{run['device']['ran_on']}. `{run['command']}`", ""]
    lines += [f"- {note}" for note in run["device"]["notes"]]
    if not run["right"]:
        lines += ["**Wrong answers:** " + "; ".join(run["complaints"]), ""]
    lines += [*table(run), ""]
    ratios = [
        (query, entry) for query in run["queries"] for entry in query["systems"] if entry.get("amplification")
    ]
    if ratios:
        systems = list(dict.fromkeys(entry["system"] for _, entry in ratios))
        lines += [
            "I/O amplification:",
            "",
            "| | " + " | ".join(systems) + " |",
            "|---" * (1 + len(systems)) + "|",
        ]
        for query in run["queries"]:
            found = {entry["system"]: entry.get("amplification") for entry in query["systems"]}
            cells = ["" if found[name] is None else f"{found[name]:.3f}" for name in systems]
            lines.append(f"| {query['query'].upper()} | " + " | ".join(cells) + " |")
        lines.append("")
    return lines


def selectivity(name: str, run: Run) -> list[str]:
    """Medians by share and strategy; the chosen one bold."""
    lines = [f"## {name.replace('-', ' ')}", "", f"`{run['query']}` on {run['device']['ran_on']}.", ""]
    lines += [f"`{run['command']}`", ""]
    for curve in run["curves"]:
        strategies = [entry["strategy"] for entry in curve["points"][0]["strategies"]]
        found = curve.get("condition", "column")
        lines += [f"**{curve['table']}**, {curve['table_rows']:,} rows, found by {found}", ""]
        lines += [
            "| rows that match | " + " | ".join(strategies) + " | auto / best | chosen |",
            "|---" * (3 + len(strategies)) + "|",
        ]
        for point in curve["points"]:
            cells = []
            for entry in point["strategies"]:
                cell = f"{1e3 * entry['median']:.4g}" + ("" if entry["right"] else " (wrong)")
                cells.append(f"**{cell}**" if entry["strategy"] == point["chosen"] else cell)
            share = point["matching_rows"] / max(curve["table_rows"], 1)
            regret = point.get("auto_over_best")
            cells.append("" if regret is None else f"{regret:.2f}")
            lines.append(f"| {share:.4%} | " + " | ".join(cells) + f" | {point['chosen']} |")
        lines.append("")
    return lines


def targets(runs: dict[str, Run]) -> list[str]:
    """What was to be reached beside what was."""
    off, on = runs.get("warm-maps-off"), runs.get("warm-maps-on")
    rows: list[tuple[str, str, str]] = []

    def add(what: str, least: str, run: Run | None, compute: Callable[[Run], str]) -> None:
        try:
            rows.append((what, least, "not measured" if run is None else compute(run)))
        except (KeyError, StopIteration, TypeError, ValueError, ZeroDivisionError):
            rows.append((what, least, "not measured"))

    add(
        "Q5 against cuDF from pinned memory, zone maps off",
        "5 ×",
        off,
        lambda run: times_faster(run, "q5", PINNED),
    )
    for name, least in (("q5", "12 ×"), ("q1", "6 ×")):
        what = f"{name.upper()} against the same, zone maps on"
        add(what, least, on, lambda run, name=name: times_faster(run, name, PINNED))  # type: ignore[misc]
    for maps, run in (("off", off), ("on", on)):
        add(
            f"Q5 against cuDF `read_parquet`, zone maps {maps}",
            "5 ×",
            run,
            lambda run: times_faster(run, "q5", PARQUET),
        )
        add(
            f"the same with `filters=`, zone maps {maps}",
            "",
            run,
            lambda run: times_faster(run, "q5", FILTERS),
        )
        add(f"Q5 against DuckDB, zone maps {maps}", "8 ×", run, lambda run: times_faster(run, "q5", DUCKDB))
    streams = [runs[name] for name in ("stream-memory", "stream-file") if name in runs]
    add(
        "filter stream over the best sequential rate of `bench block`, zone maps off",
        "≥ 0.95",
        off,
        lambda run: stream(run, streams),
    )
    add("I/O amplification Q1–Q5, zone maps off", "≤ 1.12", off, amplifications)
    add("I/O amplification Q1–Q5, zone maps on", "≤ 0.40", on, amplifications)
    add(
        "host memory beyond page cache",
        "≤ 2 GiB",
        off,
        lambda run: f"{run['memory']['anonymous_bytes'] / 2**30:.2f} GiB",
    )
    add("GPU memory in use", "≤ 4 GiB", off, lambda run: f"{run['memory']['gpu_bytes'] / 2**30:.2f} GiB")
    for maps in ("off", "on"):
        first = runs.get(f"first-maps-{maps}")
        add(
            f"first query of a process over the second, zone maps {maps}", "≤ 1.5 s", first, first_over_second
        )
    lines = ["| what | at least | measured |", "|---|---|---|"]
    return lines + [f"| {what} | {least} | {found} |" for what, least, found in rows]


def own(run: Run, query: str) -> dict[str, Any]:
    """BamQuery's entry of a query."""
    return entry_of(run, query, "BamQuery")


def entry_of(run: Run, query: str, system: str) -> dict[str, Any]:
    """A system's entry of a query."""
    asked = next(found for found in run["queries"] if found["query"] == query)
    return next(entry for entry in asked["systems"] if entry["system"] == system)


def times_faster(run: Run, query: str, system: str) -> str:
    """How many times faster than a system, by medians, and both times."""
    other, mine = entry_of(run, query, system)["median"], own(run, query)["median"]
    return f"**{other / mine:.2f} ×** ({1e3 * mine:.4g} against {1e3 * other:.4g} ms)"


def amplifications(run: Run) -> str:
    """The least and the greatest."""
    found = [query["amplification"] for query in run["queries"]]
    return f"{min(found):.3f} to {max(found):.3f}"


def stream(run: Run, benches: list[Run]) -> str:
    """Rate of the filter's column in Q1, over the best rate of any path."""
    asked = next(found for found in run["queries"] if found["query"] == "q1")
    rate = next(
        column["bytes_per_second"]
        for operator in operators(asked["profile"]["operators"])
        for column in operator.get("columns", [])
        if column["name"] == "trip_distance"
    )
    best = max(
        one["gigabytes_per_second"] for bench in benches for part in bench["runs"] for one in part["figures"]
    )
    return f"**{rate / 1e9 / best:.3f}** ({rate / 1e9:.1f} of {best:.1f} GB/s)"


def operators(operator: dict[str, Any]) -> list[dict[str, Any]]:
    """An operator and all below."""
    return [operator, *(found for child in operator["children"] for found in operators(child))]


def first_over_second(run: Run) -> str:
    """What the first answer takes longer than later ones."""
    entry = own(run, "q5")
    opening = run["opening_seconds"]["BamQuery"]
    return (
        f"{entry['first'] - entry['median']:.2f} s ({entry['first']:.2f} against {entry['median']:.3f} s; "
        f"connecting before took {opening:.2f} s)"
    )


def machine_line(machine: dict[str, Any]) -> str:
    """The machine in one line."""
    return describe_gpus(machine | {"versions": machine.get("libraries", {})}) if machine else ""


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
