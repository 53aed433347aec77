"""Which versions, writers and folders are in use, in any process, as byte-range locks on small files.

Open-file-description locks: they belong to the open file, not to the process, so two threads that opened the
file conflict as two processes do, and the system lets go of them when a process dies. No wait here is
without a deadline. Bytes of a table's `lock` file:

    version              shared by readers of a version, and by writers based on it (0: no version yet)
    VACUUM               exclusive for whoever removes old versions
    WRITERS + token      shared by the writer whose files begin with that token

and byte 0 of the database's marker file: shared while a table's folders are being made, exclusive while
those of a dropped table are removed; and its byte 1, shared by whoever has a temporary database open.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Final

from bamquery.closeable import Closeable
from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.files.filesystem import storage_error

MAX_VERSION: Final = (1 << 61) - 1
VACUUM: Final = 1 << 61
WRITERS: Final = 1 << 62
TOKEN_BITS: Final = 60
IN_USE: Final = 1
"""The byte of a temporary database's marker."""
WAIT_SECONDS: Final = 10.0
"""How long a lock that others hold briefly is waited for."""

_FLOCK: Final = "hhqqi0q"  # struct flock of 64-bit Linux


class LockFile(Closeable):
    """One open file description of a lock file; every lock taken through it goes when it is closed.

    Shared locks need no write permission, so folders on read-only volumes can be read.
    """

    def __init__(self, path: Path, *, exclusive: bool = False) -> None:
        """Open it; `exclusive` asks for write permission, which exclusive locks need.

        Raises:
            FileNotFoundError: it is not there.
            StorageError: it cannot be opened.
        """
        self.path = path
        flags = (os.O_RDWR if exclusive else os.O_RDONLY) | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            self._descriptor = os.open(path, flags)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise storage_error(error, path, "open the lock") from error
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            os.close(self._descriptor)
            raise CorruptionError("damaged: not a regular file; put an empty one in its place", path)
        # Runs at close(), and as the last resort when nobody called it.
        self._finalizer = weakref.finalize(self, _release, self._descriptor, os.getpid())

    def try_shared(self, start: int, length: int = 1) -> bool:
        """Take a shared lock on bytes [start, start + length) unless somebody holds an exclusive one."""
        return self._set(fcntl.F_RDLCK, start, length)

    def try_exclusive(self, start: int, length: int = 1) -> bool:
        """Take an exclusive lock unless somebody else holds any; length 0 means to the end."""
        return self._set(fcntl.F_WRLCK, start, length)

    def wait_shared(self, start: int, purpose: str, seconds: float = WAIT_SECONDS) -> None:
        """Take a shared lock of one byte, waiting for whoever holds it exclusively.

        Raises:
            StorageError: it is still held after `seconds`; says what it was wanted for.
        """
        deadline = time.monotonic() + seconds
        while not self.try_shared(start):
            if time.monotonic() > deadline:
                raise StorageError(f"cannot {purpose}: another process held it for {seconds:g} s", self.path)
            time.sleep(0.005)

    def wait_exclusive(self, start: int, purpose: str, seconds: float = WAIT_SECONDS) -> None:
        """Take an exclusive lock of one byte, waiting for all who hold it.

        Raises:
            StorageError: it is still held after `seconds`; says what it was wanted for.
        """
        deadline = time.monotonic() + seconds
        while not self.try_exclusive(start):
            if time.monotonic() > deadline:
                raise StorageError(f"cannot {purpose}: others held it for {seconds:g} s", self.path)
            time.sleep(0.005)

    def unlock(self, start: int, length: int = 1) -> None:
        """Let go of what this object holds there."""
        self._set(fcntl.F_UNLCK, start, length)

    def held_by_others(self, start: int, length: int = 1) -> bool:
        """True if anybody else holds any lock there."""
        request = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
        answer = self._control(fcntl.F_OFD_GETLK, request)
        return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)

    def is_current(self) -> bool:
        """False if the file was removed or replaced since it was opened: then its locks mean nothing."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.lstat(self.path))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise storage_error(error, self.path, "look at the lock") from error

    def close(self) -> None:
        """Let go of all locks; closing twice is harmless."""
        self._finalizer()

    def _set(self, kind: int, start: int, length: int) -> bool:
        try:
            self._control(fcntl.F_OFD_SETLK, struct.pack(_FLOCK, kind, os.SEEK_SET, start, length, 0))
        except (BlockingIOError, PermissionError):  # EAGAIN or EACCES: somebody else's
            return False
        return True

    def _control(self, command: int, request: bytes) -> bytes:
        if not self._finalizer.alive:
            raise StorageError("the lock is closed", self.path)
        try:
            return fcntl.fcntl(self._descriptor, command, request)
        except (BlockingIOError, PermissionError):
            raise
        except OSError as error:  # a file system without locks, say
            raise storage_error(error, self.path, "lock") from error


def _release(descriptor: int, owner: int) -> None:
    """Unlock and close; in a forked child only close, since the parent shares the locks."""
    if os.getpid() == owner:
        # Not left to close(): a child forked meanwhile would keep the locks alive.
        with suppress(OSError):
            fcntl.fcntl(
                descriptor, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0)
            )
    os.close(descriptor)
