"""One Parquet file, open several times: threads that read it at once must not share what pyarrow gives."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyarrow.parquet as pq

from bamquery.errors import IngestError

_MOST_KINDS: Final = 4
"""Sets of columns that come as dictionaries, of which files stay open."""


class OpenFiles:
    """Opens a file for one pass, and again only where all that are open are in use.

    The footer is read once: of a file of thousands of row groups it takes longer than a row group. A context
    manager: once it is left, files are closed as they come back.
    """

    def __init__(
        self, path: Path, open_file: Callable[[Sequence[str], pq.FileMetaData | None], pq.ParquetFile]
    ) -> None:
        """`open_file` takes names of columns that come as dictionaries, and the footer, if it is known."""
        self._path = path
        self._open = open_file
        self._identity = _identity(path)
        self._idle: dict[tuple[str, ...], list[pq.ParquetFile]] = {}
        self._lock = threading.Lock()
        self._is_over = False
        first = open_file((), None)
        self.metadata = first.metadata
        self._idle[()] = [first]

    @contextmanager
    def file(self, dictionaries: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
        """One for this thread; columns of these names come as dictionaries."""
        kind = tuple(dictionaries)
        with self._lock:
            if kind not in self._idle and len(self._idle) >= _MOST_KINDS:
                self._idle = {(): self._idle[()]}
            idle = self._idle.setdefault(kind, [])
        try:
            file = idle.pop()
        except IndexError:
            file = self._open(dictionaries, self.metadata)
            if _identity(self._path) != self._identity:
                raise IngestError(
                    "cannot be read: another file took its place meanwhile", self._path
                ) from None
        try:
            yield file
        except BaseException:
            file.close()
            raise
        if self._is_over:
            file.close()
        else:
            idle.append(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        for idle in self._idle.values():
            while idle:
                idle.pop().close()


def _identity(path: Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino
