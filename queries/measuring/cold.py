"""Cold caches: pages of files that a query is about to read are dropped from memory first."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

_DROP_CACHES: Final = Path("/proc/sys/vm/drop_caches")


def drop_caches(files: Iterable[Path]) -> str:
    """Drop the pages of these files, and where this process may all clean pages; says what was done.

    Pages that are dirty, or mapped by a process, stay: sync the files and close what maps them first.
    """
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    with suppress(OSError):
        _DROP_CACHES.write_text("3\n")
        return "posix_fadvise(DONTNEED) on the files, and /proc/sys/vm/drop_caches"
    return "posix_fadvise(DONTNEED) on the files"


def files_below(path: Path) -> list[Path]:
    """A file, or all files of a folder and the folders in it."""
    return [path] if path.is_file() else sorted(found for found in path.rglob("*") if found.is_file())
