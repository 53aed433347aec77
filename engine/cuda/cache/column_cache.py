"""Columns in a GPU's memory, for all queries of a process on it, as long as nobody needs the memory more.

A column is known by its number in the files of its fragments, which never change: what is here is always
valid. Which columns stay is decided by how often they were asked for (Einziger, Friedman and Manes,
"TinyLFU: A Highly Efficient Cache Admission Policy", TOS 2017): one that comes in must have been wanted more
often than each of those that make room for it, so that a large table that is read once moves nothing out.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from bamquery.engine.cuda.cache.late_columns import Held, LateColumn
from bamquery.engine.cuda.frames import column_bytes
from bamquery.engine.profiling.cache_use import CacheUse
from bamquery.storage.fragments.fragment import Fragment

ColumnKey: TypeAlias = tuple[tuple[str, int], ...]
"""Of each fragment: its file, and which of its columns it is. Not where its values are: strings that are all
empty have none, and the next column's begin at the same place."""

_KNOWN: Final = 1 << 14
"""Columns whose uses are counted; those asked for last."""
_HALVED: Final = 1 << 12
"""Uses after which all counts are halved, so that what was wanted long ago makes room."""
_LEAST_USES: Final = 2
"""Of a column that comes in: what is read once is not read again for the cache's sake."""


@dataclass(slots=True)
class _Wanted:
    """How often a column was asked for, and how many bytes of it were read from files since it was here."""

    uses: int = 0
    read: int = 0


@dataclass(frozen=True, slots=True)
class CachedColumn:
    """All rows of a column.

    Attributes:
        name: as the table called it when it came in.
        column: its values, in row order; decimals may be narrow.
        nbytes: memory that they occupy.
    """

    name: str
    column: Held
    nbytes: int


def column_key(fragments: Sequence[Fragment], name: str) -> ColumnKey:
    """What a column of a table is known by, whatever the table calls it and has beside it."""
    return tuple((str(fragment.path), fragment.stored_position(name)) for fragment in fragments)


class ColumnCache:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[ColumnKey, CachedColumn] = {}
        self._bytes = 0
        self._wanted: OrderedDict[ColumnKey, _Wanted] = OrderedDict()
        self._used = 0
        self._limit: int | None = None
        self._hits = self._misses = 0

    def find(self, keys: Iterable[ColumnKey], limit: int) -> list[CachedColumn | None]:
        """The columns, or None for those that are not here; each is used once more. `limit`: bytes."""
        with self._lock:
            self._limit = limit
            self._shrink(limit)
            found = []
            for key in keys:
                self._count_use(key)
                held = self._held.get(key)
                self._hits += held is not None
                self._misses += held is None
                found.append(held)
            return found

    def note_read(self, key: ColumnKey, nbytes: int) -> None:
        """A scan read so many bytes of a column from files."""
        with self._lock:
            wanted = self._wanted.get(key)
            if wanted is not None:
                wanted.read += nbytes

    def refuse(self, keys: Iterable[ColumnKey]) -> None:
        """There was no room for columns: as much as they are must be read of them before the next attempt."""
        with self._lock:
            for key in keys:
                if key in self._wanted:
                    self._wanted[key].read = 0

    def admits(
        self,
        sizes: Mapping[ColumnKey, tuple[int, int]],
        limit: int,
        kept: Iterable[ColumnKey] = (),
    ) -> bool:
        """Whether columns, all of them, may come in; `kept` must stay then.

        `sizes`: bytes that each takes in memory and in files. What is read from files for each query, though
        little of it, comes in once as much was read of it as there is.
        """
        with self._lock:
            for key, (_, stored) in sizes.items():
                wanted = self._wanted.get(key)
                if wanted is None or wanted.uses < _LEAST_USES or wanted.read < stored:
                    return False
            in_memory = {key: size for key, (size, _) in sizes.items()}
            return self._victims(in_memory, limit, set(kept)) is not None

    def put(self, key: ColumnKey, column: CachedColumn, limit: int, kept: Iterable[ColumnKey] = ()) -> bool:
        """Hold a column in place of such as are wanted less; False where there is no room for it."""
        with self._lock:
            victims = self._victims({key: column.nbytes}, limit, set(kept))
            if victims is None:
                return False
            for victim in victims:
                self._drop(victim)
            self._drop(key)
            self._held[key] = column
            self._bytes += column.nbytes
            return True

    def clear(self) -> int:
        """Let go of all columns; how many bytes they were. Queries that read them keep them as long."""
        with self._lock:
            freed, self._bytes = self._bytes, 0
            self._held.clear()
            return freed

    def use(self) -> CacheUse:
        """What is held."""
        with self._lock:
            return CacheUse(len(self._held), self._bytes, self._limit, self._hits, self._misses)

    def _count_use(self, key: ColumnKey) -> None:
        wanted = self._wanted.pop(key, None) or _Wanted()
        wanted.uses += 1
        self._wanted[key] = wanted
        if len(self._wanted) > _KNOWN:
            self._wanted.popitem(last=False)
        self._used += 1
        if self._used % _HALVED == 0:
            for one in self._wanted.values():
                one.uses //= 2

    def _uses(self, key: ColumnKey) -> int:
        wanted = self._wanted.get(key)
        return 0 if wanted is None else wanted.uses

    def _victims(
        self, sizes: Mapping[ColumnKey, int], limit: int, kept: set[ColumnKey]
    ) -> list[ColumnKey] | None:
        """Columns that make room for others; None where these are not worth it, or too large."""
        needed = self._bytes + sum(sizes.values()) - limit
        least = min(map(self._uses, sizes))
        victims = []
        for key in sorted(self._held.keys() - kept - sizes.keys(), key=self._uses):
            if needed <= 0 or self._uses(key) >= least:
                break
            victims.append(key)
            needed -= self._held[key].nbytes
        return victims if needed <= 0 else None

    def _shrink(self, limit: int) -> None:
        for key in sorted(self._held, key=self._uses):
            if self._bytes <= limit:
                return
            self._drop(key)

    def _drop(self, key: ColumnKey) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._bytes -= held.nbytes


def cached(name: str, column: Held) -> CachedColumn:
    """A column with its size; of a dictionary's that of the places and of the values."""
    if isinstance(column, LateColumn) and column.dictionary is not None:
        return CachedColumn(
            name, column, column_bytes(column.places.column) + column_bytes(column.dictionary.values)
        )
    found = column.stored if isinstance(column, LateColumn) else column
    return CachedColumn(name, found, column_bytes(found))
