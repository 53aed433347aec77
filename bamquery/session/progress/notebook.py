"""Bars below a notebook's cell, without widgets: an output of a line of HTML that is replaced."""

from __future__ import annotations

import os
import sys
import threading
from contextvars import Context, copy_context
from typing import Any, Final
from weakref import WeakKeyDictionary

from bamquery.session.progress.terminal import PATIENCE
from bamquery.session.query_progress import RunningQuery


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this program, so that what it displays comes below a cell."""
    shell = sys.modules.get("IPython.core.interactiveshell")
    if shell is None or not shell.InteractiveShell.initialized():
        return False
    return hasattr(shell.InteractiveShell.instance(), "kernel")


class NotebookBars:
    """A `Watcher`: one output a query, which is emptied when the caller has its rows."""

    delay = PATIENCE
    interval = 0.5

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._cells: WeakKeyDictionary[RunningQuery, Context] = WeakKeyDictionary()
        self._handles: dict[RunningQuery, Any] = {}

    def begin(self, query: RunningQuery) -> None:
        """Remember whose cell it is: called where the query is made."""
        self._cells[query] = copy_context()

    def look(self, query: RunningQuery) -> None:
        """Show the query's line, or renew it."""
        with self._lock:
            waited = query.called_for
            if waited is None or waited < PATIENCE or query.is_over:
                return
            self._display(query, bar_html(query))

    def hide(self, query: RunningQuery) -> None:
        """Empty the query's output."""
        with self._lock:
            if query in self._handles:
                self._display(query, "")
                self._handles.pop(query, None)

    def renew(self) -> None:
        """In a process made by fork, where whoever held the lock is not."""
        self._lock = threading.RLock()
        self._handles = {}

    def _display(self, query: RunningQuery, line: str) -> None:
        from IPython.display import display  # noqa: PLC0415 (only where it has been imported already)

        bundle = {"text/html": line, "text/plain": str(query.progress()) if line else ""}
        cell = self._cells.get(query) or copy_context()
        handle = self._handles.get(query)
        if handle is None:
            self._handles[query] = cell.copy().run(display, bundle, raw=True, display_id=True)
        else:
            cell.copy().run(handle.update, bundle, raw=True)


def bar_html(query: RunningQuery) -> str:
    """A bar as far as the query is, and its figures."""
    import html  # noqa: PLC0415 (slow for what it is, and only notebooks need it)

    progress = query.progress()
    value = "" if progress.fraction is None else f' value="{progress.fraction:.3f}"'
    text = html.escape(f"{query.description}: {progress}")
    return f'<progress max="1"{value} style="width: 12em; vertical-align: middle"></progress> {text}'


NOTEBOOK: Final = NotebookBars()
os.register_at_fork(after_in_child=NOTEBOOK.renew)
