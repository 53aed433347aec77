"""Reads files past the page cache, with many reads in flight."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bamquery import _native
from bamquery.storage.native_reader import NativeReader


class DirectReader(NativeReader):
    """A `BlockReader` over O_DIRECT. Scattered blocks are read `depth` at a time, runs in large requests."""

    kind: Final = "direct"

    def __init__(
        self, path: Path, expected_size: int, block_size: int | None = None, depth: int = 32
    ) -> None:
        """`block_size` None takes the smallest that the device reads.

        Raises:
            CorruptionError: the file is missing or does not have `expected_size` bytes.
            StorageError: it cannot be opened, its file system has no direct reads, or its device needs larger
                blocks; names the way out.
        """
        super().__init__(_native.open_direct(path, expected_size, block_size or 0, depth))
