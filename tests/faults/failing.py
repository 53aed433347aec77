"""A file system that fails at a chosen operation, as a full disk does."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from bamquery.storage.files.filesystem import POSIX, Buffer, WritableFile, storage_error


class FailingFile:
    """A file whose writes may stop half way."""

    def __init__(self, owner: FailingFileSystem, inner: WritableFile, path: Path) -> None:
        self._owner = owner
        self._inner = inner
        self._path = path

    def write_at(self, offset: int, buffers: Sequence[Buffer]) -> None:
        data = b"".join(bytes(memoryview(buffer).cast("B")) for buffer in buffers)
        try:
            self._owner.spend(self._path, "write")
        finally:
            failed = self._owner.failed_last
            self._inner.write_at(offset, [data[: len(data) // 2] if failed else data])

    def sync(self) -> None:
        self._owner.spend(self._path, "write to stable storage")

    def close(self) -> None:
        self._inner.close()


class FailingFileSystem:
    """The `fails_at`-th operation fails, and with `stays_full` all after it that need room.

    Removing always works. Nothing is synced for real.
    """

    def __init__(self, fails_at: int | None = None, *, stays_full: bool = False) -> None:
        self.operations = 0
        self.failed: list[Path] = []
        """Paths of the operations that failed."""
        self.failed_last = False
        self.fails_at = fails_at
        self._stays_full = stays_full

    def spend(self, path: Path, action: str) -> None:
        number = self.operations
        self.operations += 1
        self.failed_last = self.fails_at is not None and (
            number == self.fails_at or (self._stays_full and number > self.fails_at)
        )
        if self.failed_last:
            self.failed.append(path)
            raise storage_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), path, action)

    def create(self, path: Path) -> WritableFile:
        self.spend(path, "create")
        return FailingFile(self, POSIX.create(path), path)

    def publish(self, source: Path, target: Path) -> None:
        self.spend(target, "publish")
        POSIX.publish(source, target)

    def link(self, source: Path, target: Path) -> None:
        self.spend(target, "link")
        POSIX.link(source, target)

    def remove(self, path: Path) -> None:
        POSIX.remove(path)

    def make_directory(self, path: Path) -> None:
        self.spend(path, "make a folder")
        POSIX.make_directory(path)

    def remove_directory(self, path: Path) -> None:
        POSIX.remove_directory(path)

    def sync_directory(self, path: Path) -> None:
        self.spend(path, "write the folder to stable storage")
