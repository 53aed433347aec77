"""One line on a terminal that says what is done now."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final, Self

_SECONDS: Final = 0.1
_CLEAR: Final = "\r\x1b[K"


class ProgressLine:
    """On standard error; nothing where that is no terminal. It is gone at the end."""

    def __init__(self) -> None:
        self._shown = sys.stderr is not None and sys.stderr.isatty()
        self._next = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def __call__(self, text: str) -> None:
        """Say it, unless something was said a moment ago."""
        now = time.monotonic()
        if self._shown and now >= self._next:
            self._next = now + _SECONDS
            sys.stderr.write(f"{_CLEAR}{text}")
            sys.stderr.flush()
