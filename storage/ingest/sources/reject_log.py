"""Lines that readers left out with `store_rejects`, for who asks afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MOST_REJECTS: Final = 1000
"""Of a file that are kept."""
_MOST_FILES: Final = 1000
"""That are remembered; beyond them the oldest are forgotten."""


@dataclass(frozen=True, slots=True)
class Reject:
    """A line that is no record.

    Attributes:
        line: its number in the file, from 1.
        kind: what is wrong, in DuckDB's words.
        reason: the same for people.
        text: the line, with escapes for bytes that are not UTF-8.
    """

    line: int
    kind: str
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class RejectedFile:
    """A file that was read with `store_rejects`, and its rejects; numbers count from 0."""

    scan: int
    number: int
    path: Path
    rejects: Sequence[Reject]


class RejectLog:
    """What the scans of a connection left out; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: list[RejectedFile] = []
        self._scans = 0

    def begin_scan(self) -> ScanRejects:
        """Where the files of one more scan note theirs."""
        with self._lock:
            self._scans += 1
            return ScanRejects(self, self._scans - 1)

    def files(self) -> Sequence[RejectedFile]:
        """All that are remembered, in the order in which they were read."""
        with self._lock:
            return tuple(self._files)

    def add(self, scan: int, path: Path, rejects: Iterable[Reject]) -> None:
        """Note a file's; a file of a scan counts once."""
        with self._lock:
            own = [file for file in self._files if file.scan == scan]
            if all(file.path != path for file in own):
                self._files.append(RejectedFile(scan, len(own), path, tuple(rejects)))
                del self._files[:-_MOST_FILES]


@dataclass(frozen=True, slots=True)
class ScanRejects:
    """One scan's part of a log."""

    log: RejectLog
    scan: int

    def add(self, path: Path, rejects: Iterable[Reject]) -> None:
        """Note a file's."""
        self.log.add(self.scan, path, rejects)
