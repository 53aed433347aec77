"""Which files outside of the database statements may name, and opening them as they were checked."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PosixPath
from typing import IO, TYPE_CHECKING, Any, Final

from bamquery.errors import AccessError, StorageError

if TYPE_CHECKING:
    import pyarrow as pa

_DESCRIPTORS: Final = "/proc/self/fd"
_TABLE: Final = ("manifests", "fragments", "lock")
"""What the folder of a table has, wherever a link has put it."""


class CheckedPath(PosixPath):
    """The real path of a file that may be read; opened only where no link has taken a place in it since."""

    def open(  # type: ignore[override]  # of one signature: what is opened here are bytes
        self, mode: str = "rb", buffering: int = -1
    ) -> IO[Any]:
        """As `Path.open`; PermissionError where the path leads elsewhere by now."""
        return open(self, mode, buffering, opener=_same_place)


@dataclass(frozen=True, slots=True)
class FileAccess:
    """The files that statements may read and write: all, or those below some folders and some single ones.

    Every statement's way to a file it names goes through one of the methods. The database's own files and
    those of rows that do not fit in memory are no statement's to name, and not asked for here.
    """

    external: bool = True
    """Whether all files may be named."""
    directories: tuple[str, ...] = ()
    """Real paths of folders; counted where `external` is false."""
    paths: tuple[str, ...] = ()
    """Real paths of files; counted where `external` is false."""

    def readable(self, path: Path, written: str) -> Path:
        """The path to open a file by: itself, or where not every file may be read, its real path.

        `written` is what the statement calls it. Whether there is such a file makes no difference.

        Raises:
            AccessError: it is not to be read.
        """
        if self.external:
            return path
        return CheckedPath(self._require_allowed(path, written))

    def check_pattern(self, pattern: Path, written: str, is_magic: Any) -> None:
        """Refuse a pattern that looks for files where none may be read.

        `is_magic` tells whether a part of a path is a pattern.

        Raises:
            AccessError: it begins there, or leaves where it begins.
        """
        if self.external:
            return
        parts = pattern.parts
        first = next(place for place, part in enumerate(parts) if is_magic(part))
        if ".." in parts[first:]:
            raise AccessError(f'"{written}": a pattern cannot go on with .. {self._way_out()}')
        self._require_allowed(Path(*parts[:first]), written, is_folder=True)

    def check_match(self, place: Path, written: str) -> None:
        """Refuse a folder or file that a pattern reaches by a link, before anything is looked for there.

        Raises:
            AccessError: neither it nor what is below it is to be read.
        """
        if self.external:
            return
        real = _real_path(place, written)
        if not self._holds(real, is_folder=True) and real not in self.paths:
            raise self._refusal(written)

    def lists(self, folder: Path) -> bool:
        """Whether a message may say what a folder has, whose path is real where not all files may be read."""
        return self.external or self._holds(str(folder), is_folder=True)

    @contextmanager
    def target(self, path: Path) -> Iterator[Path]:
        """The path to write a file by, which holds its folder in place until the end.

        Raises:
            AccessError: it is not to be written: files are not to be named there, or the folder is one of
                a database, also by another name.
            StorageError: there is no such folder.
        """
        if "\0" in str(path):
            raise StorageError("a path has no character NUL: name another file", path)
        absolute = path.absolute()
        folder = Path(_real_path(absolute.parent, str(path)))
        if self.external:
            _require_no_database(path, absolute.parent, folder)
            yield path
            return
        real = folder / absolute.name
        if not (self._holds(str(real)) or str(real) in self.paths):
            raise self._refusal(str(path))
        if real.is_symlink() or (real.exists() and not real.is_file()):
            raise AccessError(f'"{path}" is a link, pipe or device. {self._way_out()}')
        _require_no_database(path, absolute.parent, folder)
        try:
            held = _same_place(str(folder), os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise StorageError(f"the output cannot be written: {error.strerror}", path) from error
        try:
            yield Path(f"{_DESCRIPTORS}/{held}") / absolute.name
        finally:
            os.close(held)

    def check_folder(self, path: Path) -> None:
        """Refuse a folder that is not to be made, or to have files, there.

        Raises:
            AccessError: it is not to be written to, or is one of a database, also by another name.
        """
        real = _real_path(path.absolute(), str(path))
        if not self.external and not self._holds(real, is_folder=True):
            raise self._refusal(str(path))
        _require_no_database(path, path.absolute(), Path(real))

    def _require_allowed(self, path: Path, written: str, *, is_folder: bool = False) -> str:
        real = _real_path(path, written)
        if self._holds(real, is_folder=is_folder) or (not is_folder and real in self.paths):
            return real
        raise self._refusal(written)

    def _holds(self, real: str, *, is_folder: bool = False) -> bool:
        inside = (real.startswith(folder.rstrip("/") + "/") for folder in self.directories)
        return any(inside) or (is_folder and real in self.directories)

    def _refusal(self, written: str) -> AccessError:
        return AccessError(f'"{written}" is not to be accessed: {self._way_out()}')

    def _way_out(self) -> str:
        allowed = [*self.directories, *self.paths]
        where = f"only {', '.join(allowed)} may be named" if allowed else "no file may be named"
        return (
            f"enable_external_access is off, and {where}. allowed_directories and allowed_paths, set before "
            "enable_external_access is turned off, say what may be"
        )


def open_arrow(path: Path) -> pa.NativeFile:
    """The file for Arrow to read, plainly; a checked path as it was checked.

    Raises:
        OSError: it cannot be opened.
    """
    import pyarrow as pa  # noqa: PLC0415 (settings need this module, too)

    if not isinstance(path, CheckedPath):
        return pa.OSFile(str(path), "rb")
    with path.open("rb", buffering=0) as held:
        return pa.OSFile(f"{_DESCRIPTORS}/{held.fileno()}", "rb")


def _real_path(path: Path, written: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError) as error:  # a NUL, or what no file system can spell
        raise AccessError(f"{written!r} is no path: {error}") from error


def _same_place(path: str, flags: int) -> int:
    """Open a real path; another file than the one of that name is refused, whatever leads to it."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        if os.readlink(f"{_DESCRIPTORS}/{descriptor}") != os.fspath(path):
            raise PermissionError(errno.EACCES, "a link has taken the place of a folder since it was checked")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_no_database(written: Path, *folders: Path) -> None:
    """Refuse folders within a database, as they are called and as they really are."""
    from bamquery.storage.database.folder import MARKER  # noqa: PLC0415 (for COPY TO only)

    for folder in folders:
        for above in (folder, *folder.parents):
            if os.path.lexists(above / MARKER) or all(os.path.lexists(above / name) for name in _TABLE):
                raise AccessError(
                    f'"{written}" is within the BamQuery database {above}, where only BamQuery writes: '
                    "name another folder"
                )
