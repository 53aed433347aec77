"""Bars on standard error, one a query, while their callers wait for rows."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from bamquery.session.query_progress import RunningQuery

if TYPE_CHECKING:
    from rich.console import Console

PATIENCE: Final = 1.0
"""Seconds for which a caller waits before there is a bar."""
_STEPS: Final = 1000
"""Of a bar."""


class TerminalBars:
    """A `Watcher` that draws with rich, all queries' bars on one display; they vanish when rows come.

    A bar is there only while the query's caller waits, so what the caller prints is not mixed with it.
    """

    delay = PATIENCE
    interval = 0.1

    def __init__(self, console: Console | None = None) -> None:
        """`console` instead of standard error."""
        self._console = console
        self._lock = threading.RLock()
        self._display: Any = None
        self._tasks: dict[int, Any] = {}

    @property
    def is_seen(self) -> bool:
        """Whether there is a terminal to draw on."""
        return self._console is not None or (sys.stderr is not None and sys.stderr.isatty())

    def look(self, query: RunningQuery) -> None:
        """Draw the query's bar, if its caller has been waiting for a while."""
        if not _is_due(query):
            return
        # Costs a tenth of a second: only where a bar is drawn, and before a caller could wait for the lock.
        from rich import progress  # noqa: F401, PLC0415

        # A terminal that has gone is no reason to stop, nor a query whose end the collector noticed just now.
        with self._lock, suppress(OSError, KeyError):
            if not _is_due(query) or not self._begin():
                return
            display, state = self._display, query.progress()
            if query.number not in self._tasks:
                self._tasks[query.number] = display.add_task(query.description, figures="")
            display.update(
                self._tasks[query.number],
                total=None if state.fraction is None else _STEPS,
                completed=int((state.fraction or 0) * _STEPS),
                figures=str(state),
            )
            display.refresh()

    def hide(self, query: RunningQuery) -> None:
        """Take the query's bar away, and the display with the last one."""
        with self._lock, suppress(OSError):
            task = self._tasks.pop(query.number, None)
            if task is None:
                return
            self._display.remove_task(task)
            if self._tasks:
                self._display.refresh()
            else:
                display, self._display = self._display, None
                display.stop()

    def renew(self) -> None:
        """In a process made by fork, where whoever held the lock is not."""
        self._lock = threading.RLock()
        self._display = None
        self._tasks = {}

    def _begin(self) -> bool:
        """Whether there is a display now."""
        if self._display is not None:
            return True
        from rich import progress  # noqa: PLC0415 (see `look`)
        from rich.console import Console  # noqa: PLC0415

        console = self._console or Console(stderr=True)
        # rich takes a pipe for a terminal if FORCE_COLOR is set; a bar in a log is still of no use.
        if not console.is_interactive or not console.file.isatty():
            return False
        self._display = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(bar_width=20),
            progress.TextColumn("{task.fields[figures]}", markup=False),
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._display.start()
        return True


def _is_due(query: RunningQuery) -> bool:
    """Whether its caller has been waiting for long enough."""
    waited = query.called_for
    return waited is not None and waited >= PATIENCE and not query.is_over


TERMINAL: Final = TerminalBars()
os.register_at_fork(after_in_child=TERMINAL.renew)
