"""What the shell itself writes: never with a control character that came from data."""

from __future__ import annotations

import sys

from bamquery.shell.themes import Theme
from bamquery.text.terminal import escape_lines


class Console:
    """Standard output and standard error.

    Attributes:
        theme: whose colours are used.
        quiet: whether what commands say of themselves is left out.
    """

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self.quiet = False

    def write_lines(self, text: str = "") -> None:
        """A line, or several, for people."""
        self.write(escape_lines(text).encode(errors="replace") + b"\n")

    def dim(self, text: str) -> None:
        """A line of less weight: what a command did."""
        if not self.quiet:
            text = escape_lines(text)
            self.write((self.theme.paint(text, "dim") if sys.stdout.isatty() else text).encode() + b"\n")

    def write(self, data: bytes) -> None:
        """Bytes as they are: their colours are meant."""
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """What did not go as one would expect, on standard error."""
        self._complain(text, "note")

    def error(self, text: str) -> None:
        """What failed, on standard error."""
        self._complain(text, "error")

    def failure(self, message: str) -> None:
        """What failed, with its place, in which nothing is escaped any more; its first line says it."""
        first, line_end, place = message.partition("\n")
        self._write_error(f"{self._paint(first, 'error')}{line_end}{place}")

    @property
    def has_colours(self) -> bool:
        """Whether standard error has them."""
        return sys.stderr is not None and sys.stderr.isatty() and self.theme.background != "plain"

    def _complain(self, text: str, meaning: str) -> None:
        self._write_error(self._paint(escape_lines(text), meaning))

    def _paint(self, text: str, meaning: str) -> str:
        return self.theme.paint(text, meaning) if self.has_colours else text

    def _write_error(self, text: str) -> None:
        sys.stdout.flush()
        if sys.stderr is not None:  # its descriptor is closed
            sys.stderr.buffer.write(text.encode(errors="replace") + b"\n")
            sys.stderr.flush()
