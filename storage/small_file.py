"""Files that are read as a whole: markers and manifests."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from bamquery.errors import CorruptionError
from bamquery.storage.filesystem import storage_error


def read_small_file(path: Path, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes.

    Raises:
        FileNotFoundError: there is none.
        StorageError: it cannot be read; CorruptionError: it is not such a file.
    """
    try:
        # O_NONBLOCK: opening a named pipe that somebody put here must not wait for its other end.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > most:
                raise CorruptionError(f"damaged: not a regular file of at most {most:,} bytes", path)
            return file.read(most)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error, path, "read") from error
