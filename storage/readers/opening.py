"""The one way in to a file's blocks, whichever device their values are for."""

from __future__ import annotations

from pathlib import Path

from bamquery.storage.readers.block_reader import BlockReader
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.readers.queue_reader import QueueReader


def open_blocks(path: Path, size: int, *, direct: bool, block_size: int = 512) -> BlockReader:
    """The file of so many bytes; `block_size` is for mapped reads: direct ones take what the device reads.

    Raises:
        CorruptionError: it is missing or has another size.
        StorageError: it cannot be opened, or not in this way.
    """
    return QueueReader(path, size) if direct else MappedReader(path, size, block_size)
