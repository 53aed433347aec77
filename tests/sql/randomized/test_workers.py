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
from tests.sql.randomized import run

class Endless:
    def __init__(self, seed, device, *, packed):
        pass
    def draw(self, number):
        return None
    def ask(self, query, tally, number):
        if number == 5:
            (Path(FOLDER) / str(os.getpid())).touch()
            HANG
        tally.counts["rows"] += 1
    def close(self):
        pass

run.Database = Endless
sys.exit(run.main())
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


def _running(folder: Path, hang: str) -> subprocess.Popen[str]:
    code = f"FOLDER = {str(folder)!r}\n" + _PROGRAM.replace("HANG", hang)
    return subprocess.Popen(
        [sys.executable, "-c", code, "--queries", "2000", "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    ("hang", "sent", "everyone", "counted"),
    [
        ("time.sleep(3600)", signal.SIGINT, False, 10),
        ("time.sleep(3600)", signal.SIGINT, True, 10),
        ("time.sleep(3600)", signal.SIGTERM, False, 10),
        # A library may make another error of what stops it.
        (_HIDDEN, signal.SIGINT, False, 10),
        # A process that does not listen is killed, and hands nothing back.
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)", signal.SIGINT, False, 0),
    ],
    ids=["the first process", "all, as a terminal does", "terminated", "another error", "does not listen"],
)
def test_ends_at_ctrl_c(
    tmp_path: Path, hang: str, sent: signal.Signals, everyone: bool, counted: int
) -> None:
    with _running(tmp_path, hang) as process:
        try:
            workers = _started(tmp_path, process, 2)
            if everyone:
                os.killpg(process.pid, sent)
            else:
                process.send_signal(sent)
            said, complaints = process.communicate(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, complaints
    assert "stopped" in said
    assert f": {counted} queries" in said
    assert complaints == ""
    assert not any(map(_is_there, workers))


def test_nothing_goes_on_without_the_first_process(tmp_path: Path) -> None:
    with _running(tmp_path, "time.sleep(3600)") as process:
        workers = _started(tmp_path, process, 2)
        process.kill()
    deadline = time.monotonic() + 60
    while left := list(filter(_is_there, workers)):
        assert time.monotonic() < deadline, f"{left} go on"
        time.sleep(0.05)
