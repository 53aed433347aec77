"""What a GPU's column cache holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Columns of stored tables in a GPU's memory, for all connections of a process.

    Attributes:
        columns: how many.
        nbytes: memory that they occupy.
        limit: bytes that they may, as a scan asked last; None: none has.
        hits: columns that scans found since the process began.
        misses: columns that scans did not find.
    """

    columns: int
    nbytes: int
    limit: int | None
    hits: int
    misses: int


@runtime_checkable
class CachingDevice(Protocol):
    """A device that keeps columns in its memory."""

    def cache_use(self) -> CacheUse:
        """What it keeps now."""
        ...
