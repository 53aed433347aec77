"""What a benchmark shows: a table for people, JSON for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from typing import Any, Final

from rich import box
from rich.table import Table
from rich.text import Text

from bamquery.driver.bench.live import iops_text
from bamquery.driver.bench.sizes import format_size
from bamquery.driver.bench.workload import ArrayWorkload, BlockWorkload, CacheWorkload, Figures, Setup
from bamquery.driver.doctor import gpu
from bamquery.driver.doctor.host import check_processors
from bamquery.driver.machine import Machine

_PACKAGES: Final = (
    "bamquery",
    "numpy",
    "cuda-core",
    "cuda-bindings",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-cccl",
)


@dataclass(frozen=True)
class Run:
    """One workload and what its paths did."""

    workload: Setup
    figures: list[Figures]
    swept: str = ""
    """The value of what is swept, as it was written."""


@dataclass(frozen=True)
class Report:
    """All runs of one command."""

    benchmark: str
    command: str
    sweep: str
    """Name of the option that is swept, or empty."""
    runs: list[Run]
    interrupted: bool = False

    @property
    def right(self) -> bool:
        """Whether no command failed and no byte was wrong."""
        return all(figures.right for run in self.runs for figures in run.figures)


def to_json(report: Report) -> dict[str, Any]:
    """Everything, with the machine, the date and versions."""
    return {
        "benchmark": report.benchmark,
        "command": report.command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "interrupted": report.interrupted,
        "right": report.right,
        "sweep": report.sweep or None,
        "runs": [
            {
                "swept": run.swept or None,
                "workload": run.workload.to_dict(),
                "figures": [figures.to_dict() for figures in run.figures],
            }
            for run in report.runs
        ],
    }


def describe_machine() -> dict[str, Any]:
    """Processor, memory, system, GPUs with their links, and versions; nothing that names its owner."""
    machine = Machine()
    processors = {finding.check: finding.values for finding in check_processors(machine)}
    gpus = [*gpu.check_gpus(machine), *gpu.check_cuda(machine)]
    return {
        "processor": processors["instructions"]["model"],
        "cores": processors["processors"]["allowed"],
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "gpus": [{"check": finding.check, **finding.values} for finding in gpus if finding.values],
        "versions": _versions(),
    }


def title_of(workload: Setup) -> str:
    """One line: what is asked."""
    parts = [workload.device, f"{workload.pairs} pairs of depth {workload.depth}"]
    parts.append(f"{workload.controller_threads} controller threads")
    parts.append(f"{format_size(workload.extent_bytes)} of {workload.backing}")
    if workload.members > 1:
        stripes = (
            ""
            if isinstance(workload, BlockWorkload)
            else f", stripes of {format_size(workload.stripe_bytes)}"
        )
        parts.append(f"{workload.members} drives{stripes}")
    if workload.profile:
        parts.append(f"{workload.drives} × {workload.profile}")
    match workload:
        case BlockWorkload():
            mix = {0.0: "reads", 1.0: "writes"}.get(
                workload.write_share, f"{round(100 * (1 - workload.write_share))} % reads"
            )
            what = f"{format_size(workload.block_bytes)} {workload.pattern} {mix}"
        case CacheWorkload():
            what = f"{format_size(workload.page_bytes)} pages, {workload.pattern}, "
            what += f"cache of {format_size(workload.cache_bytes)}"
        case ArrayWorkload():
            what = f"{workload.operation} of {workload.element}, {workload.pattern}, "
            what += f"cache of {format_size(workload.cache_bytes)}"
        case _:
            what = "unknown"
    return f"{what}; {', '.join(parts)}"


def table_of(report: Report) -> Table:
    """One row a path and run."""
    all_figures = [figures for run in report.runs for figures in run.figures]
    hits = any("hit_ratio" in figures.counters for figures in all_figures)
    table = Table(
        title=title_of(report.runs[0].workload) if report.runs else "nothing was measured",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    if report.sweep:
        table.add_column(report.sweep, justify="right", no_wrap=True)
    table.add_column("path", no_wrap=True)
    headers = ["rate", "GB/s", "p50 µs", "p99 µs", "cores", "per GB/s"]
    for header in [*headers, *(["hits"] if hits else []), "bytes"]:
        table.add_column(header, justify="right", no_wrap=True)
    for run in report.runs:
        for figures in run.figures:
            cells = [run.swept] if report.sweep else []
            table.add_row(*cells, *_cells(figures, hits=hits))
    return table


def drive_table_of(report: Report) -> Table | None:
    """One row for each drive's namespace, path and run; None where there were none."""
    rows = [(run, figures) for run in report.runs for figures in run.figures if figures.drives]
    if not rows:
        return None
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    if report.sweep:
        table.add_column(report.sweep, justify="right", no_wrap=True)
    table.add_column("namespace", no_wrap=True)
    for header in (
        "commands",
        "GB",
        "errors",
        "pairs",
        "depth",
        "in flight",
        "doorbell writes",
        "per command",
    ):
        table.add_column(header, justify="right", no_wrap=True)
    for run, figures in rows:
        for drive in figures.drives:
            rings = drive.doorbell_writes
            share = rings / drive.commands if rings is not None and drive.commands else None
            table.add_row(
                *([run.swept] if report.sweep else []),
                drive.namespace,
                f"{drive.commands:,}",
                f"{drive.bytes / 1e9:.3f}",
                f"{drive.errors:,}",
                str(drive.pairs),
                str(drive.depth),
                "" if drive.in_flight is None else f"{drive.in_flight:.1f}",
                "" if rings is None else f"{rings:,}",
                "" if share is None else f"{share:.3f}",
            )
    return table


def notes_of(report: Report) -> list[str]:
    """What one has to know beside the table, each thing once."""
    lines = [
        f"{figures.path}: {note}" for run in report.runs for figures in run.figures for note in figures.notes
    ]
    return list(dict.fromkeys(lines))


def _cells(figures: Figures, *, hits: bool) -> Sequence[str | Text]:
    latency = figures.latency
    times = [latency.p50, latency.p99] if latency else [None] * 2
    verdict = {
        True: Text("verified", style="green"),
        False: Text("WRONG", style="red"),
        None: Text("not compared", style="dim"),
    }[figures.verified]
    if figures.errors:
        verdict = Text(f"{figures.errors} failed", style="red")
    hit_ratio = figures.counters.get("hit_ratio")
    return [
        figures.path,
        iops_text(figures.iops),
        f"{figures.gigabytes_per_second:.3g}",
        *("" if time is None else f"{time / 1e3:.3g}" for time in times),
        _number(figures.cpu_cores),
        _number(figures.cores_per_gigabyte),
        *(["" if hit_ratio is None else f"{100 * hit_ratio:.1f} %"] if hits else []),
        verdict,
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
