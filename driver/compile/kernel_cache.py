"""Compiled kernels on disk, for the next process."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Final

from bamquery.driver.cache_folder import cache_folder

_MAGIC: Final = b"BQK1"
_DIGEST_BYTES: Final = 32
_SUFFIX: Final = ".kernel"
_PARTIAL: Final = ".partial"
_ABANDONED_S: Final = 3600
"""After which a file that its writer never finished is removed."""


class KernelCache:
    """Bytes by key, in a folder that many processes use at once.

    An entry is written beside its place and renamed into it, so that others see it whole or not at all; its
    checksum shows what disks and people do to it. Where there is no folder, or none that can be used, nothing
    is kept, and a RuntimeWarning says so once.
    """

    def __init__(self, folder: Path | None = None, limit_bytes: int = 256 << 20) -> None:
        """Keep at most `limit_bytes`, those used last, in `folder` (XDG_CACHE_HOME/bamquery/kernels)."""
        self.folder = default_folder() if folder is None else folder
        self._limit = limit_bytes
        self._said = False

    def load(self, key: str) -> bytes | None:
        """What was stored; None if nothing was, or if it is damaged."""
        if self.folder is None:
            return None
        path = self._path(self.folder, key)
        try:
            entry = path.read_bytes()
        except OSError:
            return None
        start = len(_MAGIC) + _DIGEST_BYTES
        payload = entry[start:]
        if entry[:start] != _MAGIC + hashlib.sha256(payload).digest():
            return None  # and soon replaced: who finds nothing compiles and stores
        with contextlib.suppress(OSError):
            os.utime(path)  # so that it is not the next to go
        return payload

    def store(self, key: str, payload: bytes) -> None:
        """Keep `payload`; what is used least goes if that is too much."""
        folder = self.folder
        if folder is None:
            self._say("there is no home folder")
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle, partial = tempfile.mkstemp(dir=folder, suffix=_PARTIAL)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
                os.replace(partial, self._path(folder, key))
            except BaseException:
                os.unlink(partial)
                raise
            self._evict(folder)
        except OSError as error:
            self._say(f"{folder} cannot be written ({error.strerror})")

    @staticmethod
    def _path(folder: Path, key: str) -> Path:
        return folder / f"{key}{_SUFFIX}"

    def _evict(self, folder: Path) -> None:
        entries = []
        for entry in os.scandir(folder):
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                status = entry.stat()
                if entry.name.endswith(_SUFFIX):
                    entries.append((status.st_mtime_ns, status.st_size, entry.path))
                elif entry.name.endswith(_PARTIAL) and status.st_mtime < time.time() - _ABANDONED_S:
                    os.unlink(entry.path)
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries)[:-1]:  # the newest stays, however large
            if total <= self._limit:
                return
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            total -= size

    def _say(self, reason: str) -> None:
        if self._said:
            return
        self._said = True
        warnings.warn(
            f"compiled kernels are not kept, and will be compiled again by the next process: "
            f"{reason}; name a folder with XDG_CACHE_HOME",
            RuntimeWarning,
            stacklevel=3,
        )


def default_folder() -> Path | None:
    """Where kernels are kept; None for users without a home."""
    folder = cache_folder()
    return None if folder is None else folder / "kernels"
