"""Cold caches: pages of files that a query is about to read are dropped from memory first."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_DROP_CACHES: Final = Path("/proc/sys/vm/drop_caches")


def drop_pages(files: Iterable[Path]) -> None:
    """Drop the pages of these files; those that a process has mapped stay."""
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def drop_caches(files: Iterable[Path]) -> str:
    """Drop the pages of these files, and where this process may all clean pages; says what was done."""
    drop_pages(files)
    with suppress(OSError):
        _DROP_CACHES.write_text("3\n")
        return "posix_fadvise(DONTNEED) on the files, and /proc/sys/vm/drop_caches"
    return "posix_fadvise(DONTNEED) on the files"


def cached_bytes(files: Iterable[Path]) -> int:
    """How much of these files is in the page cache, in whole pages."""
    pages = 0
    for path in files:
        size = path.stat().st_size
        if not size:
            continue
        with path.open("rb") as file, mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE) as mapped:
            held = ctypes.c_char.from_buffer(mapped)
            found = (ctypes.c_ubyte * (-(-size // mmap.PAGESIZE)))()
            done = _LIBC.mincore(ctypes.byref(held), ctypes.c_size_t(size), found)
            del held  # a mapping that something points into cannot be closed
            if done:
                raise OSError(ctypes.get_errno(), "mincore failed", str(path))
            pages += sum(byte & 1 for byte in bytes(found))
    return pages * mmap.PAGESIZE


def files_below(path: Path) -> list[Path]:
    """A file, or all files of a folder and the folders in it."""
    return [path] if path.is_file() else sorted(found for found in path.rglob("*") if found.is_file())
