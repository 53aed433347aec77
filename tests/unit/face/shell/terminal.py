"""A terminal for tests: a program in a pty, keys sent to it, and the screen that it makes, by pyte."""

from __future__ import annotations

import copy
import errno
import fcntl
import os
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyte

DEADLINE = 30.0
"""Seconds until a screen must be as expected: the machine may be busy."""

UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
CTRL_C, CTRL_D, CTRL_R = "\x03", "\x04", "\x12"
ENTER, TAB, ESCAPE = "\r", "\t", "\x1b"


class Terminal:
    """A program and its screen; a context manager that ends the program.

    Attributes:
        raw: every byte that the program wrote.
        screen: what a user would see.
    """

    def __init__(
        self,
        arguments: Sequence[str | Path],
        *,
        columns: int = 80,
        lines: int = 24,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        output: int | None = None,
    ) -> None:
        """`output`: a descriptor for its standard output, where that is not to be the terminal."""
        self.screen = pyte.HistoryScreen(columns, lines, history=5000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.status: int | None = None
        self._queries = 0
        self._main: tuple[Any, Any] | None = None
        self.pid, self.descriptor = os.forkpty()
        if self.pid == 0:
            self._become(arguments, environment or {}, cwd, output)
        self.resize(columns, lines)

    @staticmethod
    def _become(
        arguments: Sequence[str | Path], environment: Mapping[str, str], cwd: Path | None, output: int | None
    ) -> None:
        try:
            if cwd is not None:
                os.chdir(cwd)
            if output is not None:
                os.dup2(output, 1)
            kept = {"PATH", "HOME", "LANG", "PYTHONPATH"}
            own = {name: value for name, value in os.environ.items() if name in kept}
            own |= {"TERM": "xterm-256color", "PYTHONFAULTHANDLER": "1", **environment}
            # What the test's own process ignores or blocks would be inherited.
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
                signal.signal(number, signal.SIG_DFL)
            command = [sys.executable, *map(str, arguments)]
            os.execve(sys.executable, command, own)
        finally:
            os._exit(127)

    def resize(self, columns: int, lines: int) -> None:
        """As if somebody pulled at the window's corner."""
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def send(self, keys: str) -> None:
        """Type, or paste."""
        data = keys.encode()
        while data:
            self.read(0.0)
            _, writable, _ = select.select([], [self.descriptor], [], 0.05)
            if writable:
                data = data[os.write(self.descriptor, data[:1024]) :]

    def paste(self, text: str) -> None:
        """As terminals do that say where pasted text begins and ends."""
        self.send(f"\x1b[200~{text}\x1b[201~")

    def read(self, seconds: float) -> bool:
        """Take what the program writes within that time, or soon; False once it is gone."""
        readable, _, _ = select.select([self.descriptor], [], [], seconds)
        if not readable:
            return True
        try:
            data = os.read(self.descriptor, 1 << 16)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            data = b""
        if not data:
            return False
        self.raw += data
        for piece in re.split(rb"(\x1b\[\?1049[hl])", data):
            self._feed(piece)
        self._answer_queries()
        return True

    def _feed(self, piece: bytes) -> None:
        """Give it to the screen; pyte knows no alternate screen."""
        if piece == b"\x1b[?1049h":
            self._main = copy.deepcopy(self.screen.buffer), copy.copy(self.screen.cursor)
            self.screen.erase_in_display(2)
        elif piece == b"\x1b[?1049l" and self._main is not None:
            self.screen.buffer, self.screen.cursor = self._main
            self._main = None
        else:
            self._stream.feed(piece)

    def _answer_queries(self) -> None:
        """Say where the cursor is, as terminals do when asked."""
        asked = self.raw.count(b"\x1b[6n")
        for _ in range(asked - self._queries):
            place = self.screen.cursor
            os.write(self.descriptor, f"\x1b[{place.y + 1};{place.x + 1}R".encode())
        self._queries = asked

    @property
    def text(self) -> str:
        """The screen, spaces at ends of lines left out."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    @property
    def all_lines(self) -> str:
        """What went off at the top, and the screen."""
        width = self.screen.columns
        above = [
            "".join(line[place].data for place in range(width)).rstrip() for line in self.screen.history.top
        ]
        return "\n".join([*above, self.text])

    def wait(self, pattern: str, *, deadline: float = DEADLINE) -> str:
        """Wait until a regular expression is on the screen, and return the screen."""
        return self._wait(lambda: re.search(pattern, self.text, re.MULTILINE) is not None, pattern, deadline)

    def wait_gone(self, pattern: str, *, deadline: float = DEADLINE) -> str:
        """Wait until it is no more."""
        gone = re.compile(pattern, re.MULTILINE)
        return self._wait(lambda: gone.search(self.text) is None, f"no {pattern}", deadline)

    def _wait(self, condition: object, wanted: str, deadline: float) -> str:
        assert callable(condition)
        end = time.monotonic() + deadline
        while not condition():
            alive = self.read(0.05)
            if not alive and not condition():
                raise AssertionError(f"the program ended before {wanted!r}:\n{self.all_lines}")
            if time.monotonic() > end:
                raise AssertionError(f"{wanted!r} did not come:\n{self.all_lines}")
        return self.text

    @property
    def is_raw(self) -> bool:
        """Whether keys go to the program one by one, without an echo."""
        return not termios.tcgetattr(self.descriptor)[3] & (termios.ICANON | termios.ECHO)

    def prompt(self) -> None:
        """Wait until an empty prompt is the last line but for the one at the bottom."""
        self.wait(r"^bamquery> *$(?!(.|\n)*bamquery>)")

    def run(self, statement: str, pattern: str) -> str:
        """Type a line, wait for what it should bring, and for the next prompt; returns the screen."""
        before = self._prompts()
        self.send(statement + ENTER)
        self.wait(pattern)
        # What was on the screen before may look like an answer, and the prompt typed at like the next one.
        self._wait(lambda: self._prompts() > before, "another prompt", DEADLINE)
        self.prompt()
        return self.text

    def _prompts(self) -> int:
        """How many prompts were shown so far."""
        return len(re.findall("^bamquery>", self.all_lines, re.MULTILINE))

    def signal(self, number: int) -> None:
        """Send the program a signal."""
        os.kill(self.pid, number)

    def end(self, *, deadline: float = DEADLINE) -> int:
        """Wait until the program has ended; returns its exit status."""
        stop = time.monotonic() + deadline
        while self.read(0.05):
            if time.monotonic() > stop:
                raise AssertionError(f"it does not end:\n{self.all_lines}")
        _, status = os.waitpid(self.pid, 0)
        self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.status is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.descriptor)
