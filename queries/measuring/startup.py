"""`bamquery bench startup`: processor time of imports, a first query and the command, each in a new process.

Processor time is user and system time of the whole process, threads and the interpreter's end included. The
programs run in turns, so that what else the machine does meets all of them alike.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bamquery.queries.arguments import positive
from bamquery.queries.measuring.machine import describe_machine

_DEADLINE: Final = 120.0
"""Seconds after which a process is given up."""
_PAUSE: Final = 0.002
"""Seconds between two looks whether a process has ended, which are not the process's time."""
_LIBRARIES: Final = "import pyarrow, sqlglot"
_QUERY: Final = "assert {}.sql('SELECT 1').fetchall() == [(1,)]"


@dataclass(frozen=True)
class Program:
    """What is run; `beyond` names the program whose time is taken off, if there is one."""

    name: str
    title: str
    command: Sequence[str]
    beyond: str | None = None


@dataclass
class Measured:
    """Processor time and time on the clock of each run, in seconds."""

    program: Program
    processor: list[float] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.program.name,
            "title": self.program.title,
            "beyond": self.program.beyond,
            "processor_seconds": self.processor,
            "clock_seconds": self.clock,
        }


def main(argv: Sequence[str]) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="bamquery bench startup",
        description="Measure the processor time of imports, a first query and the command.",
    )
    parser.add_argument("--repeat", type=positive, default=15, help="runs of each (default: 15)")
    parser.add_argument("--json", type=Path, help="also write the results there")
    parser.add_argument("--markdown", type=Path, help="also write the table there")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="bamquery-startup-") as folder:
        measured = measure(programs(), options.repeat, Path(folder))
        machine = describe_machine(Path(folder))
    shown = table(measured)
    sys.stdout.write(shown)
    if options.json:
        report = {
            "machine": machine,
            "repeat": options.repeat,
            "results": [one.to_dict() for one in measured],
        }
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    if options.markdown:
        options.markdown.write_text(shown)
    return 0


def programs() -> list[Program]:
    """Those that can be run here; others beside BamQuery only where they are installed."""
    python = [sys.executable, "-c"]
    script = Path(sys.executable).with_name("bamquery")
    bamquery = [str(script)] if script.exists() else [sys.executable, "-m", "bamquery"]
    found = [
        Program("python", "`python -c pass`", [*python, "pass"]),
        Program("libraries", f"`{_LIBRARIES}`", [*python, _LIBRARIES]),
        Program(
            "query",
            "`import bamquery`, connect, `SELECT 1`, rows",
            [*python, "import bamquery\n" + _QUERY.format("bamquery.connect()")],
            beyond="libraries",
        ),
        Program("command", "`bamquery -c 'select 1'`", [*bamquery, "-c", "select 1"]),
        Program("version", "`bamquery --version`", [*bamquery, "--version"]),
    ]
    if importlib.util.find_spec("duckdb") is not None:
        text = "import duckdb\n" + _QUERY.format("duckdb.connect()")
        found.append(Program("duckdb", "DuckDB: `import duckdb`, connect, `SELECT 1`, rows", [*python, text]))
    shell = shutil.which("duckdb")
    if shell is not None:
        found.append(Program("duckdb-shell", "DuckDB: `duckdb -c 'select 1'`", [shell, "-c", "select 1"]))
    return found


def measure(chosen: Sequence[Program], repeat: int, folder: Path) -> list[Measured]:
    """Each program's runs, in turns; one more before them, which writes what Python keeps of modules."""
    environment = {name: value for name, value in os.environ.items() if name not in _UNWANTED}
    measured = [Measured(program) for program in chosen]
    for run in range(repeat + 1):
        for one in measured:
            processor, clock = _run(one.program, folder, environment)
            if run:
                one.processor.append(processor)
                one.clock.append(clock)
    return measured


_UNWANTED: Final = frozenset({"PYTHONDONTWRITEBYTECODE", "PYTHONPROFILEIMPORTTIME", "PYTHONSTARTUP"})
"""Variables under which Python would compile every module anew, or do something else besides."""


def _run(program: Program, folder: Path, environment: Mapping[str, str]) -> tuple[float, float]:
    """Seconds of processors and of the clock.

    Raises:
        SystemExit: it failed, or did not end.
    """
    began = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            program.command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=folder, env=environment
        )
        ended, status = 0, 0
        while not ended:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if not ended and time.perf_counter() - began > _DEADLINE:
                process.kill()
                process.wait()
                raise SystemExit(f"{program.title} did not end within {_DEADLINE:.0f} seconds")
            time.sleep(0 if ended else _PAUSE)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{program.title} failed:\n{said.read().decode(errors='replace')}")
    return usage.ru_utime + usage.ru_stime, seconds


def table(measured: Sequence[Measured]) -> str:
    """Medians in milliseconds, and the fastest run's processor time."""
    by_name = {one.program.name: one for one in measured}
    lines = [
        "| | processor time, ms | fastest | beyond pyarrow and sqlglot | on the clock |",
        "|---|---|---|---|---|",
    ]
    for one in measured:
        base = by_name.get(one.program.beyond or "")
        over = "" if base is None else _milliseconds(_median(one.processor) - _median(base.processor))
        figures = " | ".join(
            (
                f"**{_milliseconds(_median(one.processor))}**",
                _milliseconds(min(one.processor)),
                over,
                _milliseconds(_median(one.clock)),
            )
        )
        lines.append(f"| {one.program.title} | {figures} |")
    return "\n".join(lines) + "\n"


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f}"
