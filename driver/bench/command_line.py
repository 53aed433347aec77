"""`bamquery bench block | cache | array`."""

from __future__ import annotations

import importlib
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from bamquery.driver.bench.block import run_block_cpu
from bamquery.driver.bench.cache import run_array_cpu, run_cache_cpu
from bamquery.driver.bench.live import LiveProgress
from bamquery.driver.bench.options import parser_of, workload_of, workloads
from bamquery.driver.bench.plot import draw, load_pyplot
from bamquery.driver.bench.report import Report, Run, drive_table_of, notes_of, table_of, to_json
from bamquery.driver.bench.workload import (
    ArrayWorkload,
    BlockWorkload,
    CacheWorkload,
    Figures,
    Interrupted,
    Progress,
    Setup,
)
from bamquery.errors import SettingError, StorageError

OK: Final = 0
FAILED: Final = 1
INTERRUPTED: Final = 130
"""Ctrl-C: 128 and the signal's number, as shells report it."""

BENCHMARKS: Final = {
    "block": "Read and write blocks by NVMe queues, and by other paths beside them, comparing every byte.",
    "cache": "Read pages through the page cache.",
    "array": "Read elements of an array that is larger than memory would need to be.",
}

_TABLE_WIDTH: Final = 110

Runner = Callable[[Any, Progress], list[Figures]]

_CPU_RUNNERS: Final[dict[str, Runner]] = {
    "block": run_block_cpu,
    "cache": run_cache_cpu,
    "array": run_array_cpu,
}


def main(benchmark: str, argv: Sequence[str]) -> int:
    """Run one benchmark; returns the exit status."""
    parser = parser_of(benchmark, BENCHMARKS[benchmark])
    options = parser.parse_args(list(argv))
    try:
        workload, sweep = workload_of(benchmark, options)
    except SettingError as error:
        parser.error(str(error))
    if options.plot is not None:
        load_pyplot()  # before anything is measured in vain
    runs: list[Run] = []
    interrupted = False
    planned = workloads(workload, sweep)
    texts = sweep.texts if sweep else ("",)
    total = sum(one.seconds * (len(one.paths) if isinstance(one, BlockWorkload) else 1) for one in planned)
    try:
        with LiveProgress(total) as progress:
            for one, text in zip(planned, texts, strict=True):
                progress.label(f"{sweep.name}={text}" if sweep else "")
                try:
                    runs.append(Run(one, runner_of(one)(one, progress), text))
                except Interrupted as stopped:
                    runs.append(Run(one, stopped.figures, text))
                    raise
    except KeyboardInterrupt:
        interrupted = True
    command = shlex.join(["bamquery", "bench", benchmark, *argv])
    report = Report(benchmark, command, sweep.name if sweep else "", runs, interrupted)
    _show(report)
    if options.json is not None:
        _write(options.json, json.dumps(to_json(report), indent=2) + "\n")
    if options.plot is not None:
        draw(report, options.plot)
    if interrupted:
        return INTERRUPTED
    return OK if report.right else FAILED


def runner_of(workload: Setup) -> Runner:
    """What runs such a workload on its device."""
    benchmark = {BlockWorkload: "block", CacheWorkload: "cache", ArrayWorkload: "array"}[type(workload)]
    if workload.device == "cpu":
        return _CPU_RUNNERS[benchmark]
    # Imported only where it is asked for: it needs CUDA's packages.
    module = importlib.import_module(f"bamquery.driver.bench.gpu_{benchmark}")
    runner: Runner = getattr(module, f"run_{benchmark}_gpu")
    return runner


def _show(report: Report) -> None:
    console = Console(highlight=False)
    # A narrow terminal wraps lines; a table that is cut off would not say what was measured.
    console = Console(highlight=False, width=max(console.width, _TABLE_WIDTH))
    if any(run.figures for run in report.runs):
        console.print(table_of(report))
    if (drives := drive_table_of(report)) is not None:
        console.print(drives)
    for line in notes_of(report):
        console.print(line, style="dim", markup=False, soft_wrap=True)
    if report.interrupted:
        sys.stderr.write("bamquery: interrupted\n")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write the figures: {error.strerror}", path) from error
