"""Pages of files on their way into memory, before somebody waits for them.

Who pins a buffer that is not in the page cache waits for a few pages after the other: a tenth of what a drive
gives. Linux reads all of a range that it is told of (posix_fadvise(2), POSIX_FADV_WILLNEED).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from bamquery.storage.format.layout import Extent
from bamquery.storage.fragments.fragment import Fragment

_THREADS: Final = 4
"""Each waits where a drive's queue is full."""
_PIECE_BYTES: Final = 8 << 20
"""Told at once: a thread that is to end asks between two pieces."""


class ReadAhead:
    """Tells the system what will be read; one thread uses it, and closes it."""

    def __init__(self) -> None:
        self._asked: set[tuple[int, int]] = set()
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False

    def ask(self, stored: Iterable[tuple[Fragment, Extent | None]]) -> None:
        """Buffers will be wanted soon, in this order; does not wait. Nothing is asked for twice."""
        for fragment, extent in stored:
            if extent is None or (id(fragment), extent.offset) in self._asked:
                continue
            self._asked.add((id(fragment), extent.offset))
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="bamquery-read-ahead")
            self._pool.submit(self._tell, str(fragment.path), extent)

    def close(self) -> None:
        """Nobody wants more; does not wait either."""
        self._closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _tell(self, path: str, extent: Extent) -> None:
        try:
            file = os.open(path, os.O_RDONLY)
        except OSError:
            return  # whoever reads it says so
        try:
            for offset in range(extent.offset, extent.end, _PIECE_BYTES):
                if self._closed:
                    return
                os.posix_fadvise(file, offset, min(_PIECE_BYTES, extent.end - offset), os.POSIX_FADV_WILLNEED)
        except OSError:
            return  # advice, where a file system takes any
        finally:
            os.close(file)
