"""A stream to a terminal for formats that write data as they are."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

from bamquery.text.terminal import escape_line


class TerminalStream(io.RawIOBase, BinaryIO):
    """Text on its way to a terminal, with all that would steer it made visible but ends of lines and tabs."""

    def __init__(self, out: BinaryIO) -> None:
        """Write to a stream that stays open."""
        self._out = out

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, data: Any) -> int:
        """Whole characters of UTF-8."""
        text = bytes(data).decode()
        lines = ("\t".join(map(escape_line, line.split("\t"))) for line in text.split("\n"))
        self._out.write("\n".join(lines).encode())
        return len(data)

    def flush(self) -> None:
        """Pass it on."""
        self._out.flush()
