"""Where a benchmark's blocks lie: made, filled, and put in order again."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

from bamquery import _native
from bamquery.driver.bench.workload import SECTOR_BYTES, Access, Setup
from bamquery.errors import BamQueryError, StorageError

_SAMPLES = 64
_SAMPLE_BYTES = 4096


class PreparedBacking:
    """A backing that holds the workload's content."""

    def __init__(self, native: _native.BenchBacking, workload: Setup) -> None:
        """`native` is mapped and filled."""
        self.native = native
        self._workload = workload
        self._clean = True

    def restore_for(self, *, writes: bool) -> _native.BenchBacking:
        """For the next path: the content is that of the seed, whatever the one before has written."""
        self.restore()
        self._clean = not writes
        return self.native

    def restore(self) -> None:
        """Write the content again where a path has written."""
        if not self._clean:
            self.native.fill(self._workload.seed)
            self._clean = True


@contextmanager
def prepare_backing(workload: Setup, *, writes: bool) -> Iterator[PreparedBacking]:
    """Memory, or the file: made where it is missing (and then removed after), used where its content fits.

    Raises:
        BamQueryError: the file holds something else, and may not be overwritten.
        StorageError: it cannot be made, read or written.
    """
    path = workload.backing.path
    if path is None:
        native = _native.BenchBacking("", workload.extent_bytes, True)
        native.fill(workload.seed)
        yield PreparedBacking(native, workload)
        return
    state = _lay_out(path, workload)
    try:
        writable = writes or state is not _Found.FITS
        native = _native.BenchBacking(str(path), workload.extent_bytes, writable)
        if state is not _Found.FITS:
            native.fill(workload.seed)
        if workload.backing.access is Access.DIRECT:
            _drop_cached(path)
        backing = PreparedBacking(native, workload)
        try:
            yield backing
        finally:
            if state is not _Found.NOTHING or workload.backing.keep:
                backing.restore()
    finally:
        if state is _Found.NOTHING and not workload.backing.keep:
            path.unlink(missing_ok=True)


class _Found(Enum):
    FITS = 1
    OTHER = 2
    """Something else, that may be overwritten; now it has the size."""
    NOTHING = 3
    """Now there is a file of the size."""


def _lay_out(path: Path, workload: Setup) -> _Found:
    """Make sure that there is a file of that size."""
    try:
        found = path.stat()
    except FileNotFoundError:
        found = None
    except OSError as error:
        raise StorageError(f"cannot be looked at: {error.strerror}", path) from error
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise BamQueryError(f"{path} is no regular file: name one, or a new one")
    if found is not None and _holds_content(path, found.st_size, workload):
        return _Found.FITS
    if found is not None and not workload.backing.overwrite:
        raise BamQueryError(
            f"{path} is there and does not hold the content of --seed {workload.seed} over "
            f"{workload.extent_bytes} bytes: name a file that is not there, or pass --overwrite to lose it"
        )
    try:
        with open(path, "r+b" if found else "xb") as file:
            # Blocks are there before the map is written to: a full disk is an error here, not SIGBUS there.
            os.posix_fallocate(file.fileno(), 0, workload.extent_bytes)
    except OSError as error:
        if found is None:
            path.unlink(missing_ok=True)
        raise StorageError(
            f"no room for {workload.extent_bytes} bytes: {error.strerror}; choose a smaller --extent",
            path,
        ) from error
    return _Found.NOTHING if found is None else _Found.OTHER


def _holds_content(path: Path, size: int, workload: Setup) -> bool:
    """By samples: the runs themselves compare every byte they read."""
    if size < workload.extent_bytes:
        return False
    last = (workload.extent_bytes - _SAMPLE_BYTES) // _SAMPLE_BYTES
    try:
        with open(path, "rb") as file:
            for sample in range(_SAMPLES):
                offset = max(last, 0) * sample // (_SAMPLES - 1) * _SAMPLE_BYTES
                data = os.pread(file.fileno(), min(_SAMPLE_BYTES, workload.extent_bytes), offset)
                if _native.find_wrong(data, workload.seed, offset // SECTOR_BYTES) >= 0:
                    return False
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path) from error
    return True


def _drop_cached(path: Path) -> None:
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
