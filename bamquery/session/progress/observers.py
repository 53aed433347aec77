"""Who watches a query: by the setting `progress`, where the program runs, and callbacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bamquery.engine.settings import Settings
from bamquery.session.progress.callbacks import Callbacks
from bamquery.session.progress.notebook import NOTEBOOK, in_notebook
from bamquery.session.progress.terminal import TERMINAL
from bamquery.session.progress.ticker import Watcher, WatcherGroup
from bamquery.session.result import Result

if TYPE_CHECKING:
    import pyarrow as pa


def watch(result: Result, settings: Settings, callbacks: Callbacks) -> None:
    """Let those who are interested watch a result that has not begun; where nobody is, it costs nothing."""
    watchers: list[Watcher] = list(callbacks.watchers)
    if settings.progress is not False:
        if in_notebook():
            NOTEBOOK.begin(result.running)
            watchers.append(NOTEBOOK)
        elif TERMINAL.is_seen:
            watchers.append(TERMINAL)
    if watchers:
        result.running.observer = WatcherGroup(tuple(watchers))


def suppress_progress_bar(result: Result, callbacks: Callbacks) -> None:
    """For who draws a result's progress: no other bar, callbacks as before; before it begins."""
    result.running.observer = WatcherGroup(callbacks.watchers) if callbacks.watchers else None


def batches_with_progress(result: Result, description: str) -> Iterator[pa.RecordBatch]:
    """The result's batches, for who writes them somewhere: one bar until the last one has been written."""
    result.running.description = description
    with result.running.call():
        yield from result
