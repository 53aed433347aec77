import os
import pty
import subprocess
import sys

import pytest

CODE = """
import time
from bamquery.storage.ingest.progress import Progress
with Progress().show("Loading [x].csv", 1000, 2_000_000) as report:
    report(500, 1_000_000)
    time.sleep(0.3)
"""


def on_a_terminal(**environment):
    """What the code writes to standard error when that is a terminal."""
    master, slave = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS"}}
    process = subprocess.Popen(
        [sys.executable, "-c", CODE],
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**clean, "TERM": "xterm-256color", "COLUMNS": "160", **environment},
    )
    os.close(slave)
    written = b""
    while True:
        try:
            piece = os.read(master, 1 << 16)
        except OSError:  # Linux's answer once the other side is closed
            break
        if not piece:
            break
        written += piece
    output, _ = process.communicate()
    os.close(master)
    assert process.returncode == 0
    assert output == b""
    return written.decode()


def test_a_terminal_shows_rows_bytes_and_time_left():
    written = on_a_terminal()
    for piece in ("Loading [x].csv", "500 rows", "1.0 MB of 2.0 MB", "50%", "left"):
        assert piece in written
    assert "\x1b[3" in written  # colours


def test_no_color():
    written = on_a_terminal(NO_COLOR="1")
    assert "500 rows" in written
    assert "\x1b[3" not in written


def test_a_dumb_terminal_is_left_alone():
    assert on_a_terminal(TERM="dumb") == ""


@pytest.mark.parametrize("environment", [{}, {"FORCE_COLOR": "1"}, {"TTY_COMPATIBLE": "1"}])
def test_a_pipe_stays_silent(environment):
    run = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, env={**os.environ, **environment}, check=True
    )
    assert run.stdout == run.stderr == b""
