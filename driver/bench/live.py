"""How far a benchmark is, on a terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


class LiveProgress:
    """A line on standard error while a path is measured; nothing where that is no terminal."""

    def __init__(self, total_seconds: float, console: Console | None = None) -> None:
        """`total_seconds` is how long all paths of all runs are measured."""
        self._console = console or Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("preparing", total=total_seconds, rate="")
        self._label = ""
        self._done = 0.0
        self._path_seconds = 0.0
        self._path = ""

    def __enter__(self) -> Self:
        """Show it."""
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take it away."""
        self._bar.stop()

    def label(self, text: str) -> None:
        """Say which run comes, `pairs=4`."""
        self._label = text
        self._path = ""

    def __call__(self, path: str, seconds: float, operations: int, moved: int) -> None:
        """A `workload.Progress`."""
        if path != self._path or seconds < self._path_seconds:
            self._done += self._path_seconds
            self._path = path
        self._path_seconds = seconds
        description = f"{path} {self._label}".strip()
        self._bar.update(
            self._task,
            completed=self._done + seconds,
            description=description,
            rate=rate(operations, moved, seconds),
        )


def rate(operations: int, moved: int, seconds: float) -> str:
    """`1.23 MIOPS, 5.04 GB/s`."""
    if not seconds:
        return ""
    return f"{iops_text(operations / seconds)}, {moved / seconds / 1e9:.3g} GB/s"


def iops_text(iops: float) -> str:
    """`950 IOPS`, `12.3 kIOPS`, `1.23 MIOPS`."""
    for size, unit in ((1e6, "MIOPS"), (1e3, "kIOPS")):
        if iops >= size:
            return f"{iops / size:.3g} {unit}"
    return f"{iops:.3g} IOPS"
