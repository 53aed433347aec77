"""Ctrl-C ends a run of random queries, whatever its processes are at, and what was answered is counted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

_PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from tests.sql import random_run

class Endless:
    def __init__(self, seed, device):
        self.queries = self
    def whole(self):
        return None
    def ask(self, query, tally, number):
        if number == 5:
            (Path(FOLDER) / str(os.getpid())).touch()
            HANG
        tally.counts["rows"] += 1
    def close(self):
        pass

random_run.Database = Endless
sys.exit(random_run.main())
"""

_HIDDEN = """
            try:
                time.sleep(3600)
            except KeyboardInterrupt:
                raise RuntimeError from None
"""


def _started(folder: Path, process: subprocess.Popen[str], count: int) -> list[int]:
    """The processes that have come to the query which does not end."""
    deadline = time.monotonic() + 60
    while len(found := [int(path.name) for path in folder.iterdir()]) < count:
        assert time.monotonic() < deadline, "no process asks queries"
        assert process.poll() is None, "the run has ended"
        time.sleep(0.05)
    return found


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("hang", "everyone", "counted"),
    [
        ("time.sleep(3600)", False, 10),
        ("time.sleep(3600)", True, 10),
        # A library may make another error of what stops it.
        (_HIDDEN, False, 10),
        # A process that does not listen is killed, and hands nothing back.
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)", False, 0),
    ],
    ids=["the first process", "all processes, as a terminal does", "another error", "does not listen"],
)
def test_ends_at_ctrl_c(tmp_path: Path, hang: str, everyone: bool, counted: int) -> None:
    code = f"FOLDER = {str(tmp_path)!r}\n" + _PROGRAM.replace("HANG", hang)
    with subprocess.Popen(
        [sys.executable, "-c", code, "--queries", "2000", "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            workers = _started(tmp_path, process, 2)
            if everyone:
                os.killpg(process.pid, signal.SIGINT)
            else:
                process.send_signal(signal.SIGINT)
            said, complaints = process.communicate(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, complaints
    assert "stopped" in said
    assert f": {counted} queries" in said
    assert complaints == ""
    assert not any(map(_is_there, workers))
