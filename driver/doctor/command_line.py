"""`bamquery doctor [--json] [PATH]`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from bamquery.driver.doctor.examine import examine, fit
from bamquery.driver.doctor.finding import Finding, Level
from bamquery.driver.machine import Machine

_STYLES: Final = {Level.OK: "green", Level.NOTE: "yellow", Level.MISSING: "red"}
_INDENT: Final = " " * 9


def main(argv: Sequence[str]) -> int:
    """Print the report; 1 if BamQuery cannot run here, else 0."""
    parser = argparse.ArgumentParser(
        prog="bamquery doctor",
        description="Say what this machine has, and what to do about what is missing. Changes nothing.",
        epilog="exit status: 0 BamQuery runs here, 1 it lacks something it cannot run without",
    )
    parser.add_argument(
        "path",
        metavar="PATH",
        nargs="?",
        type=Path,
        default=Path(),
        help="folder or file whose file system is looked at (the current folder)",
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    options = parser.parse_args(list(argv))
    findings = examine(Machine(folder=options.path))
    if options.json:
        report = {"fit": fit(findings), "findings": [finding.to_dict() for finding in findings]}
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    else:
        _show(findings, Console(highlight=False, soft_wrap=True))
    return 0 if fit(findings) else 1


def _show(findings: Sequence[Finding], console: Console) -> None:
    for finding in findings:
        head = Text.assemble(
            (f"{finding.level:<9}", _STYLES[finding.level]), (finding.check, "bold"), f": {finding.found}"
        )
        console.print(head)
        if finding.meaning:
            console.print(Text(f"{_INDENT}{finding.meaning}", style="dim"))
        if finding.advice:
            console.print(Text(f"{_INDENT}→ {finding.advice}"))
    counts = {level: sum(finding.level is level for finding in findings) for level in Level}
    console.print(", ".join(f"{count} {level}" for level, count in counts.items()))
    if not fit(findings):
        console.print(Text("BamQuery cannot run here", style="red"))
