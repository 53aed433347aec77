"""A relation's rows as Python values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from bamquery.python_values import python_rows, whole_number
from bamquery.relations.base import RelationBase
from bamquery.result import Result


class RelationRows(RelationBase):
    """`fetchall` and its like."""

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows as tuples of Python values; those that are left where `fetchone` has been called."""
        self._session.require_open()
        with self._lock:
            cursor, self._cursor = self._cursor, None
            return list(_rows(self.run()) if cursor is None else cursor)

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last one, once: then it begins again."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """The next `size` rows, fewer at the end; none after the last one, once: then it begins again."""
        self._session.require_open()
        most = whole_number(size, "size")
        with self._lock:
            if self._cursor is None:
                self._cursor = _rows(self.run())
            rows = list(islice(self._cursor, most))
            if not rows and most:
                self._cursor = None
            return rows


# Not a method: a generator that knew its relation would keep it, and the versions it holds, from being freed.


def _rows(result: Result) -> Iterator[tuple[Any, ...]]:
    with result:
        for batch in result:
            yield from python_rows(batch)
