"""Opening files of a database: regular ones only, and not what a link, pipe or device leads to."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bamquery.errors import CorruptionError
from bamquery.storage.files.filesystem import storage_error


@contextmanager
def open_regular(path: Path) -> Iterator[int]:
    """A descriptor of a file, to read.

    Raises:
        FileNotFoundError: there is none.
        CorruptionError: it is no regular file. StorageError: it cannot be opened.
    """
    try:
        # O_NONBLOCK: opening a named pipe that somebody put here must not wait for its other end.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:  # a link; a socket
            raise irregular(path) from error
        raise storage_error(error, path, "read") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise irregular(path)
        yield descriptor
    finally:
        os.close(descriptor)


def regular_size(path: Path) -> int:
    """Bytes of a file that others open by its name.

    Raises:
        FileNotFoundError: there is none.
        CorruptionError: it is no regular file. StorageError: it cannot be looked at.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error, path, "read") from error
    if not stat.S_ISREG(found.st_mode):
        raise irregular(path)
    return found.st_size


def read_small_file(path: Path, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes.

    Raises:
        FileNotFoundError: there is none.
        StorageError: it cannot be read; CorruptionError: it is not such a file.
    """
    with open_regular(path) as descriptor:
        return read_content(descriptor, path, most)


def read_content(descriptor: int, path: Path, most: int) -> bytes:
    """The content of a file that `open_regular` opened.

    Raises:
        StorageError: it cannot be read; CorruptionError: it has more than `most` bytes.
    """
    try:
        if os.fstat(descriptor).st_size > most:
            raise CorruptionError(f"damaged: not a regular file of at most {most:,} bytes", path)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    except OSError as error:
        raise storage_error(error, path, "read") from error


def irregular(path: Path) -> CorruptionError:
    """The error that says that what has this name is no regular file."""
    return CorruptionError("damaged: not a regular file, but a link, folder, pipe, socket or device", path)
