"""Columns that one query has read whole, for its other scans of the same tables; gone when it is over."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from bamquery.engine.cuda.cache.column_cache import CachedColumn, ColumnKey
from bamquery.engine.execution.context import ExecutionContext

if TYPE_CHECKING:
    from bamquery.engine.cuda.frames import CudaFrame


class QueryColumns:
    """Thread-safe: memory that another query needs is taken from here."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[ColumnKey, CachedColumn] = {}

    def find(self, key: ColumnKey) -> CachedColumn | None:
        """One that was read before."""
        with self._lock:
            return self._held.get(key)

    def keep(self, key: ColumnKey, column: CachedColumn, limit: int) -> None:
        """For the query's next scans, as long as all of them take no more bytes than `limit`."""
        with self._lock:
            if sum(held.nbytes for held in self._held.values()) + column.nbytes <= limit:
                self._held[key] = column

    def clear(self) -> int:
        """Let go of all; how many bytes they were. Scans that use them keep them as long."""
        with self._lock:
            held, self._held = self._held, {}
        return sum(column.nbytes for column in held.values())


class ColumnsOfQueries:
    """Those of all queries that run on a GPU; thread-safe."""

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()
        self._of: dict[int, QueryColumns] = {}

    def columns(self, context: ExecutionContext[CudaFrame]) -> QueryColumns:
        """The query's, until it is over."""
        key = id(context)
        with self._lock:
            found = self._of.get(key)
            if found is None:
                found = self._of[key] = QueryColumns()
                context.at_end.callback(self._forget, key)
            return found

    def clear(self) -> int:
        """Let go of all columns; how many bytes they were."""
        with self._lock:
            every = list(self._of.values())
        return sum(columns.clear() for columns in every)

    def _forget(self, key: int) -> None:
        with self._lock:
            del self._of[key]
