"""Tables, views and their columns, as completion knows them: read in the background, never waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bamquery.errors import BamQueryError
from bamquery.text.identifiers import fold_case

if TYPE_CHECKING:
    from bamquery.connection.connection import Connection
    from bamquery.shell.database_opening import Opening

_FRESH: Final = 2.0
"""Seconds for which a table's columns are not looked at again."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column and its type, as SQL spells it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """What there was at one moment.

    Attributes:
        tables: names as they were written, each with `table` or `view`.
        columns: by folded name of the table; not of all tables while they are being read.
        all_columns: each name once, with the table that has it or how many have.
        is_read: whether tables have been looked at.
    """

    tables: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Sequence[Column]] = field(default_factory=dict)
    all_columns: Mapping[str, str] = field(default_factory=dict)
    is_read: bool = False


class Names:
    """Thread-safe; reading starts over when a statement has changed something."""

    def __init__(self, opening: Callable[[], Opening]) -> None:
        """`opening` is asked each time, as `.open` changes it."""
        self._opening = opening
        self._catalogue = CatalogSnapshot()
        self._seen: dict[str, tuple[float, Sequence[Column]]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._again = False

    @property
    def catalogue(self) -> CatalogSnapshot:
        """As far as it is known by now."""
        return self._catalogue

    def refresh(self) -> None:
        """Read everything anew on a thread, unless there is no connection yet."""
        if not self._opening().is_ready:
            return
        with self._lock:
            self._seen.clear()
            self._again = True
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._run, name="bamquery-names", daemon=True)
                thread.start()
                self._thread = thread  # not before: who waits for it would find it not begun

    def columns(self, table: str) -> Sequence[Column]:
        """The columns of a table or view, now; none where there is no such table, or no connection yet."""
        key = fold_case(table)
        now = time.monotonic()
        known = self._seen.get(key)
        if known is not None and now - known[0] < _FRESH:
            return known[1]
        opening = self._opening()
        if not opening.is_ready:
            return self._catalogue.columns.get(key, ())
        found = read_columns(opening.connection(), table)
        self._seen[key] = (now, found)
        return found

    def wait_first(self, seconds: float) -> None:
        """Wait for names where there is a connection and they have never been read."""
        if not self._catalogue.is_read and self._opening().is_ready:
            if self._thread is None:
                self.refresh()
            self.wait(seconds)

    def wait(self, seconds: float) -> bool:
        """Wait until everything has been read; returns whether it has."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
            return not thread.is_alive()
        return True

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._again:
                    self._thread = None
                    return
                self._again = False
            # A connection that is closed meanwhile, or a damaged table, leaves what is known as it was.
            with suppress(BamQueryError):
                self._read_names(self._opening().connection())

    def _read_names(self, connection: Connection) -> None:
        tables = dict.fromkeys(connection.tables, "table") | dict.fromkeys(connection.views, "view")
        before = self._catalogue
        # Tables can be completed before all of their columns have been read.
        self._catalogue = CatalogSnapshot(tables, before.columns, before.all_columns, is_read=True)
        columns: dict[str, Sequence[Column]] = {}
        owners: dict[str, list[str]] = {}
        for table in tables:
            if self._again:
                return
            columns[fold_case(table)] = listed = read_columns(connection, table)
            for column in listed:
                owners.setdefault(column.name, []).append(table)
        where = {name: of[0] if len(of) == 1 else f"{len(of)} tables" for name, of in owners.items()}
        self._catalogue = CatalogSnapshot(tables, columns, where, is_read=True)


def read_columns(connection: Connection, table: str) -> Sequence[Column]:
    """The columns of a table or view; none where it cannot be looked at."""
    try:
        relation = connection.table(table)
        return [Column(name, kind) for name, kind in zip(relation.columns, relation.types, strict=True)]
    except BamQueryError:
        return ()
