"""Which pages of a file the page cache has."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Final

import numpy as np

from bamquery.storage.format.layout import Extent

_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def is_cached(path: str, extent: Extent) -> bool:
    """Whether all pages of a buffer are in memory, so that to pin them reads nothing.

    Of files that neither belong to this user nor may be written, Linux tells nobody: they count as cached
    (mincore(2), since 5.2). `extent` begins on a page. False where it cannot be told.
    """
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        with mmap.mmap(file, extent.length, prot=mmap.PROT_READ, offset=extent.offset) as mapped:
            pages = np.zeros(-(-extent.length // mmap.PAGESIZE), np.uint8)
            view = np.frombuffer(mapped, np.uint8)
            address, target = view.ctypes.data, pages.ctypes.data
            del view  # or the map cannot be closed
            failed = _LIBC.mincore(
                ctypes.c_void_p(address), ctypes.c_size_t(extent.length), ctypes.c_void_p(target)
            )
            return not failed and bool((pages & 1).all())
    except (OSError, ValueError):
        return False
    finally:
        os.close(file)
