"""Compiled kernels on disk, for the next process."""

from __future__ import annotations

import functools
import hashlib
import warnings
from pathlib import Path
from typing import Any, Final

from bamquery.driver.cache_folder import cache_folder
from bamquery.driver.compile.toolchain import cuda_module

_DIGEST_BYTES: Final = 32


class KernelCache:
    """cuda.core's cache of programs, in a folder of ours that many processes use at once.

    It writes an entry beside its place and renames it, so that others see it whole or not at all, and lets go
    what was used least. Added is a checksum, which shows what disks and people do to an entry. A cache is
    never in the way: where there is no folder, or none that can be used, nothing is kept, and a
    RuntimeWarning says so once.
    """

    def __init__(self, folder: Path | None = None, limit_bytes: int = 256 << 20) -> None:
        """Keep at most `limit_bytes`, those used last, in `folder` (XDG_CACHE_HOME/bamquery/kernels)."""
        self.folder = default_folder() if folder is None else folder
        self._limit = limit_bytes
        self._said = False

    def load(self, key: bytes) -> bytes | None:
        """What was stored; None if nothing was, or if it is damaged."""
        if self.folder is None:
            return None
        try:
            entry = self._entries.get(key, b"")
        except OSError:
            return None  # who finds nothing compiles and stores, and then hears why
        payload = entry[_DIGEST_BYTES:]
        return payload if entry[:_DIGEST_BYTES] == hashlib.sha256(payload).digest() else None

    def store(self, key: bytes, payload: bytes) -> None:
        """Keep `payload`; what is used least goes if that is too much."""
        if self.folder is None:
            self._say("there is no home folder")
            return
        try:
            self._entries[key] = hashlib.sha256(payload).digest() + payload
        except OSError as error:
            self._say(f"{self.folder} cannot be written ({error.strerror})")

    @functools.cached_property
    def _entries(self) -> Any:
        utils = cuda_module("cuda.core.utils")
        return utils.FileStreamProgramCache(self.folder, max_size_bytes=self._limit)

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
