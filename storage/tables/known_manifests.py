"""Manifests that were read before: every statement asks for those of its tables, which seldom change."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bamquery.errors import CorruptionError
from bamquery.storage.files.filesystem import storage_error
from bamquery.storage.files.regular_file import open_regular, read_content
from bamquery.storage.tables.manifest import Manifest, way_out

_LARGEST: Final = 1 << 30  # bytes; some 5 M fragments
_MOST_BYTES: Final = 16 << 20
"""Of files whose content is kept; parsed it takes several times as much."""
_LEAST_BYTES: Final = 8 << 10
"""What each of them counts at least."""
_SETTLED_NS: Final = 2_000_000_000
"""Times of files go by ticks: within one, a file may change and seem the same."""

_Identity = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class _Known:
    """A manifest, and what tells that its file is as it was."""

    manifest: Manifest
    size: int
    identity: _Identity | None
    """None where the file was too young to be told by it."""
    data: bytes | None
    """What was read, where there is no identity."""


class KnownManifests:
    """Parsed manifests by the path of their files, those used last. Thread-safe."""

    def __init__(self) -> None:
        """It begins empty."""
        self._lock = threading.Lock()
        self._known: OrderedDict[Path, _Known] = OrderedDict()
        self._bytes = 0

    def read(self, path: Path) -> Manifest:
        """The manifest at `path`, the same object as before where the file has not changed.

        Raises:
            FileNotFoundError: there is none.
            CorruptionError, StorageError: as `Manifest.from_bytes`, or the file cannot be read.
        """
        known = self._take(path)
        try:
            with open_regular(path) as descriptor:
                now = time.time_ns()
                identity, changed = _identity(descriptor, path)
                if known is not None and known.identity == identity:
                    self._keep(path, known)
                    return known.manifest
                data = read_content(descriptor, path, _LARGEST)
        except CorruptionError as error:
            raise CorruptionError(f"{error.reason}; {way_out(path)}", path) from error
        same = known is not None and known.data == data
        manifest = known.manifest if known is not None and same else Manifest.from_bytes(data, path)
        size = max(len(data), _LEAST_BYTES)
        if changed < now - _SETTLED_NS:
            self._keep(path, _Known(manifest, size, identity, None))
        else:
            self._keep(path, _Known(manifest, size, None, data))
        return manifest

    def forget(self, folder: Path) -> None:
        """Read those of a database again."""
        within = f"{folder}{os.sep}"  # a test of texts, as there may be thousands
        with self._lock:
            for path in [path for path in self._known if str(path).startswith(within)]:
                self._bytes -= self._known.pop(path).size

    def _take(self, path: Path) -> _Known | None:
        with self._lock:
            return self._known.get(path)

    def _keep(self, path: Path, known: _Known) -> None:
        if known.size > _MOST_BYTES:
            return
        with self._lock:
            if self._known.get(path) is known:
                self._known.move_to_end(path)
                return
            before = self._known.pop(path, None)
            self._known[path] = known
            self._bytes += known.size - (0 if before is None else before.size)
            while self._bytes > _MOST_BYTES:
                self._bytes -= self._known.popitem(last=False)[1].size


def _identity(descriptor: int, path: Path) -> tuple[_Identity, int]:
    """What is another one once the file has changed, and when that was, in ns."""
    try:
        state = os.fstat(descriptor)
    except OSError as error:
        raise storage_error(error, path, "read") from error
    identity = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    return identity, state.st_ctime_ns


KNOWN_MANIFESTS: Final = KnownManifests()


def read_manifest(path: Path) -> Manifest:
    """Read the manifest at `path`, or know it already; see `KnownManifests.read`."""
    return KNOWN_MANIFESTS.read(path)
