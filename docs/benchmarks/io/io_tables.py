"""Prints the measurements beside this file (`bamquery bench ... --json io-*.json`) as Markdown tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def main(folder: Path = FOLDER) -> int:
    """Print a section for each file `io-*.json`; 1 if one of them has a wrong byte or a failed command."""
    reports = [(path, json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob("io-*.json"))]
    lines = ["# Queues, page cache and array: all measurements", ""]
    lines += ["Written by `io/io_tables.py` from the JSON files beside it; `io.md` says what they mean.", ""]
    machine = None
    for path, report in reports:
        if report["machine"] != machine:
            machine = report["machine"]
            lines += [describe(machine), ""]
        lines += section(path.stem, report)
    sys.stdout.write("\n".join(lines))
    return 0 if all(report["right"] for _, report in reports) else 1


def section(name: str, report: dict[str, Any]) -> list[str]:
    """Heading, command and table of one report."""
    lines = [f"## {name.removeprefix('io-')}", "", f"{report['date']}: `{report['command']}`", ""]
    if report["interrupted"]:
        lines += ["**Interrupted.**", ""]
    swept = [report["sweep"]] if report["sweep"] else []
    hits = any("hit_ratio" in one["counters"] for run in report["runs"] for one in run["figures"])
    columns = [*swept, "path", "M operations/s", "GB/s", "p50 µs", "p99 µs", "cores", "cores per GB/s"]
    columns += [*(["hits"] if hits else []), "bytes"]
    lines += ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for run in report["runs"]:
        for figures in run["figures"]:
            cells = [run["swept"]] if swept else []
            cells += row(figures)
            if hits:
                ratio = figures["counters"].get("hit_ratio")
                cells.append("" if ratio is None else f"{100 * ratio:.1f} %")
            cells.append(verdict(figures))
            lines.append("| " + " | ".join(cells) + " |")
    notes = [
        f"{one['path']}: {note}" for run in report["runs"] for one in run["figures"] for note in one["notes"]
    ]
    return [*lines, "", *(f"- {note}" for note in dict.fromkeys(notes)), *([""] if notes else [])]


def row(figures: dict[str, Any]) -> list[str]:
    """Path and rates of one measurement."""
    latency = figures["latency_ns"]
    return [
        figures["path"],
        f"{figures['iops'] / 1e6:.3g}",
        f"{figures['gigabytes_per_second']:.3g}",
        f"{latency['p50'] / 1e3:.3g}" if latency else "",
        f"{latency['p99'] / 1e3:.3g}" if latency else "",
        optional(figures["cpu_cores"]),
        optional(figures["cores_per_gigabyte"]),
    ]


def verdict(figures: dict[str, Any]) -> str:
    """Whether every byte was right."""
    if figures["errors"]:
        return f"**{figures['errors']} failed**"
    return {True: "verified", False: "**wrong**", None: "not compared"}[figures["verified"]]


def optional(value: float | None) -> str:
    """A number, or nothing."""
    return "" if value is None else f"{value:.2f}"


def describe(machine: dict[str, Any]) -> str:
    """The machine in one line."""
    gpus = [found["name"] for found in machine["gpus"] if "name" in found]
    links = [f"{found['gb_s']:g} GB/s PCIe" for found in machine["gpus"] if "gb_s" in found]
    drivers = [f"driver {found['version']}" for found in machine["gpus"] if "version" in found]
    versions = [f"{name} {version}" for name, version in machine["versions"].items()]
    parts = [
        *gpus,
        *links,
        *drivers,
        f"{machine['processor']}, {machine['cores']} cores",
        f"{machine['memory_bytes'] / 2**30:.0f} GiB",
        machine["system"],
        f"Python {machine['python']}",
        *versions,
    ]
    return ", ".join(parts) + "."


if __name__ == "__main__":
    sys.exit(main())
