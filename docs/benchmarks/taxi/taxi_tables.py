"""Prints the measurements beside this file (`bamquery taxi run --json`) as Markdown tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
DATA = {
    "generated": "20 M generated trips, random order, 0.03 % long, no nulls",
    "real": "The real files",
}
RUNS = {
    "warm-maps-off": "warm, without zone maps",
    "warm-maps-on": "warm, with zone maps",
    "cold-maps-off": "cold, without zone maps",
    "cold-maps-on": "cold, with zone maps",
    "cold-direct": "cold, with zone maps, direct reads",
}


def table(run: dict[str, Any]) -> list[str]:
    """Median (fastest) in milliseconds by system, and BamQuery's bytes."""
    systems = [entry["system"] for entry in run["queries"][0]["systems"]]
    lines = [
        f"| | needed MB | read MB | amplification | {' | '.join(systems)} |",
        "|---" * (4 + len(systems)) + "|",
    ]
    for query in run["queries"]:
        times = [f"{entry['median'] * 1e3:.4g} ({entry['fastest'] * 1e3:.4g})" for entry in query["systems"]]
        needed, read = query["bytes_needed"] / 1e6, query["bytes_read"] / 1e6
        figures = f"{needed:.1f} | {read:.1f} | **{query['amplification']:.3f}**"
        lines.append(f"| {query['query'].upper()} | {figures} | {' | '.join(times)} |")
    return lines


def main() -> None:
    """Print all tables."""
    first: dict[str, Any] = {}
    lines: list[str] = []
    for data, title in DATA.items():
        for name, description in RUNS.items():
            run = json.loads((FOLDER / f"taxi-{data}-{name}.json").read_text("utf-8"))
            assert run["right"], f"{data} {name}: {run['complaints']}"
            first = first or run
            if name == "warm-maps-off":
                long = run["queries"][0]["matching_rows"]
                lines += [f"\n## {title}\n", f"{run['table_rows']:,} rows, {long:,} of at least 30 miles.\n"]
            lines += [f"**{description}** (`{run['command']}`)\n", *table(run), ""]
    machine = first["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["libraries"].items())
    header = [
        "# Q1–Q5: all measurements\n",
        "Median (fastest) in milliseconds. Written by `taxi/taxi_tables.py` from the JSON files beside it.\n",
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_bytes'] / 2**30:.0f} GiB, "
        f"{machine['file_system']}, {machine['system']}, Python {machine['python']}; {versions}.",
    ]
    sys.stdout.write("\n".join([*header, *lines]))


if __name__ == "__main__":
    main()
