"""The one seam through which every change under a database folder is made.

Crash, full-disk and kill tests put their own implementation here; production has one, `PosixFileSystem`.
Reads do not go through it. Durability is the caller's: a file's bytes are safe after `WritableFile.sync`, its
name after `FileSystem.sync_directory` of the folder that holds it.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import pyarrow as pa

from bamquery.errors import CorruptionError, StorageError

Buffer: TypeAlias = bytes | bytearray | memoryview | pa.Buffer
_Named: TypeAlias = tuple[int, str]
"""A folder that is held open, and a name in it."""

_MAX_BUFFERS: Final = 1024  # IOV_MAX of Linux: what one pwritev takes
_RENAME_NOREPLACE: Final = 1
_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
"""A folder to name things in, which needs no more than the permission to search it."""
_SYNC_FILE_RANGE_WRITE: Final = 2
_START_BYTES: Final = 1 << 20
"""Writes from this size on are started on their way to the disk at once."""
# What link() answers where the file system has no hard links (FAT, some network and FUSE ones).
_NO_HARD_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class WritableFile(Protocol):
    """A new file, open for writing."""

    def write_at(self, offset: int, buffers: Sequence[Buffer]) -> None:
        """Write the buffers one after another from byte `offset` on: all of them, or StorageError."""
        ...

    def sync(self) -> None:
        """Return once everything written is on stable storage."""
        ...

    def close(self) -> None:
        """Close it; not a sync. Closing twice is harmless."""
        ...


class FileSystem(Protocol):
    """Every way in which a database folder changes. Failures are StorageErrors that name the path."""

    def create(self, path: Path) -> WritableFile:
        """Create a file that must not exist yet (FileExistsError)."""
        ...

    def publish(self, source: Path, target: Path) -> None:
        """Give a finished file its final name, at once or not at all; FileExistsError if that is taken.

        The old name may or may not remain, and is the caller's to remove.
        """
        ...

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second name; one that it has already is no error."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file; one that is already gone is no error."""
        ...

    def make_directory(self, path: Path) -> None:
        """Make one folder in an existing one; one that already exists is no error."""
        ...

    def remove_directory(self, path: Path) -> None:
        """Remove an empty folder; one that is already gone is no error."""
        ...

    def sync_directory(self, path: Path) -> None:
        """Return once the folder's names are on stable storage."""
        ...


def storage_error(error: OSError, path: Path, action: str) -> StorageError:
    """`error` as the user should read it: path, what was tried, and the system's reason."""
    reason = error.strerror or str(error)
    hint = {
        errno.ENOSPC: ": free some space on the volume and try again",
        errno.EDQUOT: ": the disk quota is used up",
        errno.EFBIG: ": raise the file-size limit (ulimit -f)",
        errno.EROFS: ": the volume is mounted read-only",
        errno.EMFILE: ": raise the limit of open files (ulimit -n)",
    }.get(error.errno or 0, "")
    return StorageError(f"cannot {action}: {reason}{hint}", path)


class PosixFile:
    """A file descriptor that writes whole buffers."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path

    def write_at(self, offset: int, buffers: Sequence[Buffer]) -> None:
        """See `WritableFile.write_at`."""
        views = [view for view in (memoryview(buffer).cast("B") for buffer in buffers) if view.nbytes]
        start = offset
        first = 0
        while first < len(views):
            try:
                written = os.pwritev(self._descriptor, views[first : first + _MAX_BUFFERS], offset)
            except OSError as error:
                raise storage_error(error, self._path, "write") from error
            if written == 0:
                raise StorageError(
                    "cannot write: the file system took no bytes and named no error", self._path
                )
            offset += written
            while first < len(views) and written >= views[first].nbytes:
                written -= views[first].nbytes
                first += 1
            if written:
                views[first] = views[first][written:]
        if offset - start >= _START_BYTES:
            _start_writing(self._descriptor, start, offset - start)

    def sync(self) -> None:
        """See `WritableFile.sync`."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise storage_error(error, self._path, "write to stable storage") from error

    def close(self) -> None:
        """See `WritableFile.close`."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        try:
            os.close(descriptor)
        except OSError as error:  # network file systems report failed writes here
            raise storage_error(error, self._path, "write") from error


class PosixFileSystem:
    """The operating system's files.

    Each change names things in a folder that is held open. Below `root` that folder was reached through no
    link: one that takes the place of a folder, at any moment, is an error and not followed.
    """

    def __init__(self, root: Path | None = None) -> None:
        """Use a database's folder as `root`; the way there may go through links."""
        self._root = root

    def create(self, path: Path) -> WritableFile:
        """See `FileSystem.create`."""
        try:
            with self._hold_folder(path.parent) as folder:
                # No O_TRUNC and O_EXCL always: nothing here can ever overwrite a file.
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                return PosixFile(os.open(path.name, flags, 0o666, dir_fd=folder), path)
        except FileExistsError:
            raise
        except OSError as error:
            raise storage_error(error, path, "create") from error

    def publish(self, source: Path, target: Path) -> None:
        """See `FileSystem.publish`: a hard link, or a rename that refuses to replace."""
        try:
            with self._hold_folder(source.parent) as before, self._hold_folder(target.parent) as after:
                self._publish((before, source.name), (after, target.name), target)
        except FileExistsError:
            raise
        except OSError as error:
            raise storage_error(error, target, "publish") from error

    def link(self, source: Path, target: Path) -> None:
        """See `FileSystem.link`."""
        try:
            with self._hold_folder(source.parent) as before, self._hold_folder(target.parent) as after:
                one, other = (before, source.name), (after, target.name)
                try:
                    _link(one, other)
                except FileExistsError:
                    if not _is_same(one, other):
                        raise StorageError("cannot link: another file has this name", target) from None
        except OSError as error:
            raise storage_error(error, target, "link") from error

    def remove(self, path: Path) -> None:
        """See `FileSystem.remove`."""
        try:
            with self._hold_folder(path.parent) as folder:
                os.unlink(path.name, dir_fd=folder)
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(error, path, "remove") from error

    def make_directory(self, path: Path) -> None:
        """See `FileSystem.make_directory`."""
        try:
            with self._hold_folder(path.parent) as folder:
                os.mkdir(path.name, dir_fd=folder)
        except FileExistsError as error:
            if not path.is_dir():
                raise StorageError("cannot make a folder: a file of this name is in the way", path) from error
        except OSError as error:
            raise storage_error(error, path, "make a folder") from error

    def remove_directory(self, path: Path) -> None:
        """See `FileSystem.remove_directory`."""
        try:
            with self._hold_folder(path.parent) as folder:
                os.rmdir(path.name, dir_fd=folder)
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(error, path, "remove the folder") from error

    def sync_directory(self, path: Path) -> None:
        """See `FileSystem.sync_directory`."""
        try:
            with self._hold_folder(path) as folder:
                descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        except OSError as error:
            raise storage_error(error, path, "open the folder") from error
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:  # EINVAL: a file system whose folders need (and know) no sync
                raise storage_error(error, path, "write the folder to stable storage") from error
        finally:
            os.close(descriptor)

    @contextmanager
    def _hold_folder(self, folder: Path) -> Iterator[int]:
        """A folder to name things in.

        Raises:
            OSError: it is not there, or cannot be used.
            CorruptionError: a link stands in the place of a folder below the root.
        """
        held = hold_folder(folder, self._root)
        try:
            yield held
        finally:
            os.close(held)

    @staticmethod
    def _publish(source: _Named, target: _Named, path: Path) -> None:
        try:
            _link(source, target)
        except FileExistsError:
            # A network file system may repeat a link whose answer was lost: then the name is ours already.
            with suppress(OSError):
                if _is_same(source, target):
                    return
            raise
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            _rename_noreplace(source, target, path)


def hold_folder(folder: Path, root: Path | None) -> int:
    """A descriptor of a folder, for names in it; to be closed. Below `root`, links are not followed.

    Raises:
        OSError: it is not there, or cannot be used.
        CorruptionError: a link stands in the place of a folder below the root.
    """
    if root is None or not folder.is_relative_to(root):
        return os.open(folder, _FOLDER)
    held = os.open(root, _FOLDER)
    place = root
    try:
        for part in folder.relative_to(root).parts:
            place /= part
            below = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=held)
            os.close(held)
            held = below
    except OSError as error:
        os.close(held)
        if error.errno == errno.ENOTDIR and os.path.islink(place):
            raise linked_folder(place) from error
        raise
    return held


def linked_folder(path: Path) -> CorruptionError:
    """The error that says that a folder of a database is a link."""
    return CorruptionError(
        "damaged: a link in the place of a folder, and nothing is written or removed through one; put the "
        "folder itself there",
        path,
    )


def _link(source: _Named, target: _Named) -> None:
    """Give a file a second name; a link would get one itself."""
    os.link(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0], follow_symlinks=False)


def _is_same(one: _Named, other: _Named) -> bool:
    first, second = (os.stat(name, dir_fd=folder, follow_symlinks=False) for folder, name in (one, other))
    return os.path.samestat(first, second)


def _start_writing(descriptor: int, offset: int, length: int) -> None:
    """Have the kernel begin to write a range to the disk, so that the sync finds little left to do.

    Left alone it would keep everything in memory until then, and the disk would idle meanwhile. Only a hint:
    it promises nothing, and failures to write are the sync's to tell.
    """
    sync_file_range = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if sync_file_range is not None:
        sync_file_range(descriptor, ctypes.c_int64(offset), ctypes.c_int64(length), _SYNC_FILE_RANGE_WRITE)


def _rename_noreplace(source: _Named, target: _Named, path: Path) -> None:
    """The publication of file systems without hard links."""
    libc = ctypes.CDLL(None, use_errno=True)
    renameat2 = getattr(libc, "renameat2", None)
    failure = errno.ENOSYS
    if renameat2 is not None:
        done = renameat2(
            ctypes.c_int(source[0]),
            os.fsencode(source[1]),
            ctypes.c_int(target[0]),
            os.fsencode(target[1]),
            ctypes.c_uint(_RENAME_NOREPLACE),
        )
        if done == 0:
            return
        failure = ctypes.get_errno()
    if failure == errno.EEXIST:
        raise FileExistsError(failure, os.strerror(failure), str(path))
    if failure in {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP}:
        raise StorageError(
            "cannot publish: this file system has neither hard links nor a rename that refuses to replace, "
            "so two writers could overwrite each other; put the database on another volume",
            path,
        )
    raise OSError(failure, os.strerror(failure))


POSIX: Final[FileSystem] = PosixFileSystem()
