"""Bars on a terminal: there while a query's caller waits, gone afterwards."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pyte
import pytest

SCRIPT = """
import sys
import pyarrow as pa
import bamquery

def batches():
    for start in range(0, 8000, 1000):
        yield pa.record_batch({"x": pa.array(range(start, start + 1000))})
        if start == 4000:
            print("half", flush=True)
            sys.stdin.readline()

con = bamquery.connect()
schema = pa.schema([("x", pa.int64())])
con.register("gated", pa.RecordBatchReader.from_batches(schema, batches()))
con.sql("SET threads = 1")
SETTING
sys.stderr.write("before\\n")
ACTION
sys.stderr.write("after\\n")
"""

SELECT = 'print(con.sql("SELECT sum(x) FROM gated").fetchall(), flush=True)'
WRITE = 'con.sql("CREATE TABLE [t] AS SELECT x FROM gated".replace("[", chr(34)).replace("]", chr(34)))'


class Terminal:
    """A program whose standard error is a terminal of 100 columns, and its screen."""

    def __init__(self, script: str, **environment: str) -> None:
        self._screen = pyte.Screen(100, 24)
        self._stream = pyte.ByteStream(self._screen)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.written = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=slave,
            text=True,
            env={**os.environ, "TERM": "xterm", **environment},
        )
        os.close(slave)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self._screen.display if line.strip()]

    def read(self, seconds: float) -> bool:
        """What comes within that time; False at the end."""
        if select.select([self._master], [], [], seconds)[0]:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # how Linux says that nobody has the other end open
                return False
            self.written += data
            self._stream.feed(data)
            return bool(data)
        return True

    def until(self, text: str) -> None:
        deadline = time.monotonic() + 60
        while not any(text in line for line in self.lines):
            assert self.read(0.1), self.lines
            assert time.monotonic() < deadline, self.lines

    def end(self) -> str:
        """Let it go on; what it wrote to standard output."""
        out, _ = self.process.communicate("\n", timeout=60)
        while self.read(0.1):
            pass
        os.close(self._master)
        return out


def script(action: str, setting: str = "") -> str:
    return SCRIPT.replace("ACTION", action).replace("SETTING", setting)


def test_a_bar_appears_and_vanishes():
    terminal = Terminal(script(SELECT))
    terminal.until("5,000 rows")
    assert terminal.lines[0] == "before"
    assert terminal.lines[1].startswith("Running ")
    assert "cpu" in terminal.lines[1]
    assert terminal.end() == "half\n[(31996000,)]\n"
    assert terminal.lines == ["before", "after"]
    assert terminal.process.returncode == 0


def test_what_is_written_says_so():
    terminal = Terminal(script(WRITE))
    terminal.until("5,000 rows")
    assert terminal.lines[1].startswith("Writing t ")
    terminal.end()
    assert terminal.lines == ["before", "after"]


def test_ctrl_c_takes_the_bar_along():
    terminal = Terminal(script(SELECT))
    terminal.until("Running")
    terminal.process.send_signal(signal.SIGINT)
    terminal.end()
    assert not any("Running" in line for line in terminal.lines)
    assert any("KeyboardInterrupt" in line for line in terminal.lines)


@pytest.mark.parametrize(
    ("setting", "environment"),
    [('con.sql("SET progress = off")', {}), ("", {"TERM": "dumb"})],
    ids=["setting", "dumb terminal"],
)
def test_no_bar(setting, environment):
    terminal = Terminal(script(SELECT, setting), **environment)
    assert terminal.process.stdout.readline() == "half\n"
    deadline = time.monotonic() + 2  # twice as long as a bar would take
    while time.monotonic() < deadline:
        terminal.read(0.1)
    assert terminal.end() == "[(31996000,)]\n"
    assert terminal.written == b"before\r\nafter\r\n"


def test_two_queries_at_once_have_a_bar_each():
    action = """
import threading
def other():
    con.sql("SELECT sum(x) FROM other").fetchall()
con.register("other", pa.RecordBatchReader.from_batches(schema, batches()))
thread = threading.Thread(target=other)
thread.start()
con.sql("SELECT sum(x) FROM gated").fetchall()
thread.join()
"""
    terminal = Terminal(script(action))
    terminal.until("Running")
    deadline = time.monotonic() + 60
    while sum("Running" in line for line in terminal.lines) < 2:
        assert terminal.read(0.1)
        assert time.monotonic() < deadline, terminal.lines
    terminal.process.stdin.write("\n")
    terminal.end()
    assert terminal.lines == ["before", "after"]
