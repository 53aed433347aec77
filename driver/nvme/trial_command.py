"""`bamquery nvme test`: the drive is opened, tried, described and closed again."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from bamquery.driver.controller import NamespaceShape
from bamquery.driver.machine import Machine
from bamquery.driver.nvme.drive import NvmeController, NvmeDrive
from bamquery.driver.nvme.drives import Drive
from bamquery.driver.nvme.progress_line import ProgressLine
from bamquery.driver.nvme.trial import Findings, Trial, call_interruptibly, opens
from bamquery.driver.nvme.trial_report import describe, describe_lines, findings_lines
from bamquery.errors import StorageError
from bamquery.text.terminal import escape_line

OK: Final = 0
FAILED: Final = 1
INTERRUPTED: Final = 130
"""Ctrl-C: 128 and the signal's number, as shells report it."""


def run_test(machine: Machine, place: Drive, *, nsid: int | None, blocks: int, json_file: Path | None) -> int:
    """Test one drive; returns the exit status.

    Raises:
        BamQueryError: the drive cannot be opened, or has no such namespace; the file cannot be written.
    """
    findings = Findings()
    report: dict[str, Any] = {}
    with ProgressLine() as say:
        say(f"opening {place.address}")
        try:
            drive = call_interruptibly(lambda: NvmeDrive(place.address))
            with closing(drive):
                report = describe(machine, place, drive)
                _print(describe_lines(drive))
                namespace = drive.namespace(nsid)
                report["nsid"] = namespace.nsid
                Trial(opens(drive, namespace.nsid), _shape(drive, namespace.nsid), say).run(blocks, findings)
                report["statistics"] = drive.statistics()
        except KeyboardInterrupt:
            findings.interrupted = True
    _print(findings_lines(findings))
    if json_file is not None and report:
        _write(json_file, json.dumps(report | findings.to_dict(), indent=2) + "\n")
        _print([f"{json_file} has all of it; docs/nvme.md says where to send it"])
    if findings.interrupted:
        sys.stderr.write("bamquery: interrupted\n")
        return INTERRUPTED
    return OK if findings.right else FAILED


def _shape(drive: NvmeDrive, nsid: int) -> NamespaceShape:
    memory = drive.queue_memory(nsid, pairs=1, depth=2, transfer_bytes=0)
    with NvmeController(drive, memory) as controller:
        return controller.shape_of(nsid)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{escape_line(line)}\n")
    sys.stdout.flush()


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write the report: {error.strerror}", path) from error
