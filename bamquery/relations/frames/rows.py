"""A relation's rows as Python values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from bamquery.relations.base import RelationBase
from bamquery.relations.frames.python_values import python_rows, whole_number
from bamquery.session.result import Result


class RelationRows(RelationBase):
    """`fetchall` and its like.

    `fetchone` and `fetchmany` go through one run. Once it is over they give nothing, until `fetchall` has
    dropped their position; a run that failed leaves none.
    """

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows as tuples of Python values; those that are left where `fetchone` has been called.

        `fetchone` and `fetchmany` then begin again.
        """
        self._session.require_open()
        with self._lock:
            cursor, self._cursor = self._cursor, None
            if cursor is not None:
                return list(cursor)
            result = self.run()
            with result.running.call():
                return list(_rows(result))

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last one, however often it is called."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """The next `size` rows, fewer at the end; none after the last one, however often it is called."""
        self._session.require_open()
        most = whole_number(size, "size")
        with self._lock:
            if self._cursor is None:
                self._cursor = _rows(self.run())
            try:
                return list(islice(self._cursor, most))
            except BaseException:
                self._cursor = None  # an error is no end: who asks again hears of it again
                raise


# Not a method: a generator that knew its relation would keep it, and the versions it holds, from being freed.


def _rows(result: Result) -> Iterator[tuple[Any, ...]]:
    with result:
        for batch in result:
            yield from python_rows(batch)
