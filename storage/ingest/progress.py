"""A bar on a terminal: rows, bytes, time left. Where nobody watches, nothing is written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console

Report: TypeAlias = Callable[[int, int], None]
"""Takes the rows and the bytes done so far."""


class Progress:
    """Shows how far a load is, on standard error if that is a terminal, and is silent otherwise.

    rich draws, so NO_COLOR, TERM=dumb, TTY_INTERACTIVE and their like are respected.
    """

    def __init__(self, console: Console | None = None) -> None:
        """`console` instead of standard error."""
        self._console = console

    @contextmanager
    def show(
        self, description: str, total_rows: int | None = None, total_bytes: int | None = None
    ) -> Iterator[Report]:
        """A bar for as long as the context is open; it vanishes in the end.

        Without `total_bytes` the share done is that of rows, without either it is not known.
        """
        console = self._terminal()
        if console is None:
            yield lambda rows, size: None
            return
        # Costs a tenth of a second, so only where a bar is drawn.
        from rich import filesize, progress  # noqa: PLC0415

        bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.TaskProgressColumn(),
            progress.TextColumn("{task.fields[amount]}", markup=False),
            progress.TimeElapsedColumn(),
            progress.TextColumn("left"),
            progress.TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        by_bytes = total_bytes is not None
        task = bar.add_task(description, total=total_bytes if by_bytes else total_rows, amount="")

        def report(rows: int, size: int) -> None:
            amounts = [f"{rows:,} rows"] if rows else []
            if total_bytes is not None:
                amounts.append(f"{filesize.decimal(size)} of {filesize.decimal(total_bytes)}")
            elif size:
                amounts.append(filesize.decimal(size))
            bar.update(task, completed=size if by_bytes else rows, amount=", ".join(amounts))

        with bar:
            yield report

    def _terminal(self) -> Console | None:
        if self._console is None and not sys.stderr.isatty():
            return None
        from rich.console import Console  # noqa: PLC0415

        console = self._console or Console(stderr=True)
        # rich takes a pipe for a terminal if FORCE_COLOR is set; a bar in a log is still of no use.
        return console if console.is_interactive and console.file.isatty() else None
