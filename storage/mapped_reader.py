"""Reads files through the page cache, by copying out of a memory map."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bamquery import _native
from bamquery.storage.native_reader import NativeReader


class MappedReader(NativeReader):
    """A `BlockReader` over a memory map. A file truncated while in use is a StorageError, never SIGBUS."""

    kind: Final = "mapped"

    def __init__(self, path: Path, expected_size: int, block_size: int = 512) -> None:
        """`block_size` is what counts as a block: the page cache itself reads pages.

        Raises:
            CorruptionError: the file is missing or does not have `expected_size` bytes.
            StorageError: it cannot be opened.
        """
        super().__init__(_native.open_mapped(path, expected_size, block_size))
