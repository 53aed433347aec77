"""Folders of `:memory:` databases: gone with their connection, or where that was killed, soon after."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from bamquery.errors import StorageError
from bamquery.storage.files.filesystem import storage_error
from bamquery.storage.files.locks import IN_USE, LockFile

PREFIX: Final = "bamquery-memory-"
_MOST_TRIES: Final = 10


def make_temporary(create: Callable[[Path], None], marker: str) -> tuple[Path, LockFile]:
    """A new database in the folder for temporary files, and the lock that says that it is in use.

    Folders of processes that were killed are removed first.

    Args:
        create: makes a database of an empty folder.
        marker: the file there that is locked.

    Raises:
        StorageError: it cannot be made.
    """
    remove_abandoned(marker)
    for _ in range(_MOST_TRIES):
        try:
            folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        except OSError as error:
            raise storage_error(error, Path(tempfile.gettempdir()), "make a folder") from error
        try:
            create(folder)
            lock = LockFile(folder / marker)
            if lock.try_shared(IN_USE) and lock.is_current():
                return folder, lock
            lock.close()
        except FileNotFoundError:
            continue  # as below
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        # Another process took the folder for abandoned before it was locked, and removes it.
    raise StorageError("other processes remove it while it is being made", folder)


def remove_abandoned(marker: str) -> None:
    """Remove this user's databases that no process holds; what cannot be removed stays."""
    for folder in list(_own_folders()):
        with suppress(OSError, StorageError), LockFile(folder / marker, exclusive=True) as lock:
            if lock.try_exclusive(IN_USE) and lock.is_current():
                _remove(folder, marker)


def _own_folders() -> Iterator[Path]:
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            # Not through a link: anybody can put one into a folder for temporary files.
            if (
                entry.name.startswith(PREFIX)
                and entry.is_dir(follow_symlinks=False)
                and entry.stat(follow_symlinks=False).st_uid == os.getuid()
            ):
                yield Path(entry.path)


def _remove(folder: Path, marker: str) -> None:
    # The marker last: whoever is stopped here leaves something that can be found again.
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != marker:
            path.unlink()
    shutil.rmtree(folder, ignore_errors=True)
