"""The server's log: one JSON object a line on standard error, without statements' texts and secrets."""

from __future__ import annotations

import datetime
import json
import sys
import threading
from typing import Any, Final, TextIO

_LOCK: Final = threading.Lock()


class Log:
    """Writes lines; a stream that cannot be written to is no reason to stop serving."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """To a stream; None: standard error, as it is at the moment."""
        self._stream = stream

    def write(self, event: str, **what: Any) -> None:
        """One line: the time, what happened, and more of it by name; None is left out."""
        said = {name: value for name, value in what.items() if value is not None}
        time = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": time, "event": event, **said}, default=str)
        stream = self._stream or sys.stderr
        with _LOCK:
            try:
                print(line, file=stream, flush=True)
            except (OSError, ValueError, AttributeError):
                return
