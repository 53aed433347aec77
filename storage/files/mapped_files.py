"""Maps of files that stay from query to query: mapping anew takes a fifth of a short one."""

from __future__ import annotations

import os
import stat
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.files.regular_file import irregular

_MOST_FILES: Final = 64
_MOST_BYTES: Final = 768 << 20
"""Of maps that nobody reads, what was read of them. It is the page cache's, but counted as the process's."""
_PORTION_BITS: Final = 21
"""Of the size of portions of a file that are known to have been read or not."""

_Key = tuple[Path, int]
_Identity = tuple[int, int, int]


@dataclass(eq=False)
class MappedFile:
    """A map, and who uses it.

    Attributes:
        file: the map; thread-safe.
        identity: device, inode and size of the file.
        users: readers that are open.
        kept: whether it stays when nobody reads it.
        read: which portions of the file have been read.
        unused_bytes: what was read of it when its last reader went; 0 while there is one.
    """

    file: _native.BlockFile
    identity: _Identity
    users: int = 1
    kept: bool = True
    read: NDArray[np.bool_] = field(init=False)
    unused_bytes: int = 0

    def __post_init__(self) -> None:
        self.read = np.zeros((max(self.identity[2], 0) >> _PORTION_BITS) + 1, np.bool_)

    @property
    def bytes(self) -> int:
        """About how much was read."""
        return int(np.count_nonzero(self.read)) << _PORTION_BITS

    def note_ranges(self, offsets: NDArray[np.int64]) -> None:
        """Ranges that begin there, none of them large, are read."""
        self.read[np.minimum(offsets >> _PORTION_BITS, len(self.read) - 1)] = True

    def note_span(self, begin: int, end: int) -> None:
        """What is between two places is read, or some of it."""
        self.read[begin >> _PORTION_BITS : (end >> _PORTION_BITS) + 1] = True


class FileWatcher(Protocol):
    """Who keeps files open or mapped beside `MappedFiles`."""

    def forget_files(self, folder: Path) -> None:
        """Keep none of the files below a folder."""
        ...


class MappedFiles:
    """The maps of a process, those used last. Thread-safe."""

    def __init__(self, most_files: int = _MOST_FILES, most_bytes: int = _MOST_BYTES) -> None:
        self._most_files = most_files
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._maps: OrderedDict[_Key, MappedFile] = OrderedDict()
        self._unused_files = 0
        self._unused_bytes = 0
        self._watchers: weakref.WeakSet[FileWatcher] = weakref.WeakSet()

    def open(self, path: Path, expected_size: int, block_size: int) -> MappedFile:
        """The file's map; `close` follows.

        Raises:
            CorruptionError: the file is missing or does not have `expected_size` bytes.
            StorageError: it cannot be opened.
        """
        key = (path, block_size)
        identity = _identity(path)
        with self._lock:
            found = self._maps.get(key)
            if found is not None and found.identity == identity and identity[2] == expected_size:
                if not found.users:
                    self._forget_unused(found)
                found.users += 1
                self._maps.move_to_end(key)
                return found
        # A file that is another one by now has a map of its own until the older one is forgotten.
        opened = MappedFile(_native.open_mapped(path, expected_size, block_size), identity)
        with self._lock:
            older = self._drop(key) if key in self._maps else []
            self._maps[key] = opened
        _close_all(older)
        return opened

    def close(self, mapped: MappedFile) -> None:
        """One reader fewer."""
        with self._lock:
            mapped.users -= 1
            if mapped.users:
                return
            if mapped.kept:
                mapped.unused_bytes = mapped.bytes
                self._unused_files += 1
                self._unused_bytes += mapped.unused_bytes
                dropped = self._shrink()
            else:
                dropped = [mapped]
        _close_all(dropped)

    def usage(self) -> tuple[int, int]:
        """How many files are mapped, and about how many bytes of them were read."""
        with self._lock:
            return len(self._maps), sum(mapped.bytes for mapped in self._maps.values())

    def forget(self, folder: Path) -> None:
        """Keep no maps of the files below a folder, or of one file; nor do those who `watch`."""
        with self._lock:
            keys = [key for key in self._maps if folder in (key[0], *key[0].parents)]
            dropped = [mapped for key in keys for mapped in self._drop(key)]
            watchers = list(self._watchers)
        _close_all(dropped)
        for watcher in watchers:
            watcher.forget_files(folder)

    def watch(self, watcher: FileWatcher) -> None:
        """Tell `watcher` of each `forget` as long as it lives."""
        with self._lock:
            self._watchers.add(watcher)

    def _shrink(self) -> list[MappedFile]:
        """Keep as many as may be; those in use are not counted. Those that are to be closed."""
        dropped: list[MappedFile] = []
        if self._is_within_limits():
            return dropped
        for key in [key for key, mapped in self._maps.items() if not mapped.users]:
            dropped += self._drop(key)
            if self._is_within_limits():
                break
        return dropped

    def _is_within_limits(self) -> bool:
        return self._unused_files <= self._most_files and self._unused_bytes <= self._most_bytes

    def _forget_unused(self, mapped: MappedFile) -> None:
        self._unused_files -= 1
        self._unused_bytes -= mapped.unused_bytes
        mapped.unused_bytes = 0

    def _drop(self, key: _Key) -> list[MappedFile]:
        """Forget a map; it, if it is to be closed."""
        mapped = self._maps.pop(key)
        mapped.kept = False
        if mapped.users:
            return []
        self._forget_unused(mapped)
        return [mapped]


def _close_all(dropped: Iterable[MappedFile]) -> None:
    """Nobody waits for it who opens or closes others: it takes a while where much was read."""
    for mapped in dropped:
        mapped.file.close()


def _identity(path: Path) -> _Identity:
    try:
        found = os.lstat(path)
    except OSError:
        return (0, 0, -1)  # opening it says what is wrong
    if not stat.S_ISREG(found.st_mode):
        raise irregular(path)
    return (found.st_dev, found.st_ino, found.st_size)


MAPPED_FILES: Final = MappedFiles()
