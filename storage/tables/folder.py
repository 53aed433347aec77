"""The folder of one table: where things are, which version is the latest, and how one is held in place."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.files.filesystem import linked_folder, storage_error
from bamquery.storage.files.locks import WAIT_SECONDS, LockFile
from bamquery.storage.tables import name as table_name
from bamquery.storage.tables.known_manifests import read_manifest
from bamquery.storage.tables.manifest import (
    RECORDS,
    Manifest,
    Place,
    commit_name,
    file_name,
    parse_commit_name,
    parse_file_name,
    table_record,
    way_out,
)

NO_VERSION: Final = 0
"""What the first writer of a table bases its commit on."""

_LISTINGS: Final = 20
"""How often a folder is listed before a name that should be there is missing."""


@dataclass(frozen=True)
class TableFolder:
    """Paths below `<database>/tables/<encoded name>`."""

    path: Path

    @cached_property
    def manifests(self) -> Path:
        """One file a version, and manifests being written."""
        return self.path / "manifests"

    @cached_property
    def fragments(self) -> Path:
        """Two files a fragment."""
        return self.path / "fragments"

    @cached_property
    def lock(self) -> Path:
        """The empty file whose bytes are locked."""
        return self.path / "lock"

    def manifest(self, version: int) -> Path:
        """The file of a version."""
        path = self._manifests.get(version)
        if path is None:
            self._manifests.clear()  # statements mostly ask for the latest one
            path = self._manifests[version] = self.manifests / file_name(version)
        return path

    @cached_property
    def _manifests(self) -> dict[int, Path]:
        return {}

    def commit(self, version: int) -> Path:
        """The empty file that is made once a version is committed, and gone once a later one is."""
        return self.manifests / commit_name(version)

    @property
    def record(self) -> Path:
        """The empty file that is made once a first version is committed, and gone before the last one is."""
        return table_record(self.path)

    def versions(self) -> list[int]:
        """Versions that are stored, ascending; none where there is no such table (or not yet)."""
        return _parse_versions(list_names(self.manifests), parse_file_name)

    def commits(self) -> list[int]:
        """Versions that a file says were committed, ascending; of all but the last it may be gone."""
        return _parse_versions(list_names(self.manifests), parse_commit_name)

    def latest(self) -> int:
        """The version that counts, or NO_VERSION.

        Raises:
            CorruptionError: a later one was committed and its manifest is missing, or one was and none is
                there.
        """
        for _ in range(_LISTINGS):
            version, committed = _latest_of(tuple(list_names(self.manifests)))
            if committed <= version and (version != NO_VERSION or not os.path.lexists(self.record)):
                return version
            time.sleep(0.001)  # a listing may miss names that come and go meanwhile
        if committed == NO_VERSION:
            raise CorruptionError(
                "missing: versions of this table were committed, and none is there; put a copy of the folder "
                f"{self.path} back; or give the table up: remove that folder and the file {self.record}",
                self.manifests if self.path.is_dir() else self.path,
            )
        path = self.manifest(committed)
        raise CorruptionError(f"missing: this version of the table was committed; {way_out(path)}", path)

    def require_no_links(self) -> None:
        """Refuse to change a table one of whose folders is a link, behind which are files of somebody else.

        Raises:
            CorruptionError: one is; names it.
        """
        for path in (self.path.parent, self.path, self.manifests, self.fragments, self.record.parent):
            if os.path.islink(path):
                raise linked_folder(path)

    def read(self, version: int) -> Manifest:
        """The manifest of a version; one that has not arrived from elsewhere is as one that was dropped.

        Raises:
            FileNotFoundError: it is not stored (any more).
            CorruptionError, StorageError: it cannot be read; names the file.
        """
        manifest = read_manifest(self.manifest(version))
        if manifest.origin is None or self._has_arrived(manifest, manifest.origin):
            return manifest
        return Manifest(version, manifest.table, "drop", manifest.created_at, None, ())

    def _has_arrived(self, manifest: Manifest, origin: Place) -> bool:
        """Whether the table that this version comes from has ended in favour of it."""
        before = TableFolder(self.path.parent / origin.folder)
        try:
            left = read_manifest(before.manifest(origin.version))
        except FileNotFoundError:
            return False
        return left.heir == Place(self.path.name, manifest.version)

    def read_latest(self) -> Manifest | None:
        """The latest version, dropped or not; None where there is none."""
        deadline = time.monotonic() + WAIT_SECONDS
        while (version := self.latest()) != NO_VERSION:
            try:
                manifest = self.read(version)
            except FileNotFoundError:
                # Vacuum took it: there is a later one by now.
                give_up(deadline, self.manifest(version))
                continue
            # What tells that it has arrived may go once a later version does without.
            if not manifest.dropped or self.latest() == version:
                return manifest
        return None


@dataclass
class Pin:
    """A version held in place by a shared lock until `close`."""

    version: int
    manifest: Manifest | None
    """None for NO_VERSION."""
    lock: LockFile

    def close(self) -> None:
        """Let vacuum have the version."""
        self.lock.close()


def pin_latest(folder: TableFolder) -> Pin | None:
    """Hold the latest version, dropped ones and NO_VERSION included; None without a lock file (no table).

    Raises:
        CorruptionError: the manifest is damaged, or there are versions but no lock file.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        version = folder.latest()
        lock = _open_lock(folder, version)
        if lock is None:
            if version == NO_VERSION or folder.latest() == NO_VERSION:
                return None
            if _is_dropped(folder, version):  # vacuum is removing the folder, or died while it did
                return None
            raise CorruptionError(
                "missing: its table cannot be locked; create an empty file there", folder.lock
            )
        try:
            pin = _pin(folder, version, lock)
            # A listing may miss names that come and go meanwhile, so it is made again under the lock.
            if pin is not None and folder.latest() == version and lock.is_current():
                return pin
        except BaseException:
            lock.close()
            raise
        lock.close()
        give_up(deadline, folder.manifest(version))


def pin_version(folder: TableFolder, version: int) -> Pin | None:
    """Hold a version; None where it is not stored (any more).

    Raises:
        CorruptionError: the manifest is damaged.
    """
    lock = _open_lock(folder, version)
    if lock is None:
        return None
    try:
        pin = _pin(folder, version, lock)
        if pin is not None and pin.manifest is not None and lock.is_current():
            return pin
    except BaseException:
        lock.close()
        raise
    lock.close()
    return None


def table_folders(database: Path) -> list[tuple[str, TableFolder]]:
    """Name (folded) and folder of every table of a database, whatever state it is in; sorted.

    Also of those whose folder is missing.
    """
    tables = database / "tables"
    records = database / RECORDS
    is_folder = records.is_dir() and not records.is_symlink()  # anything else is what `check` tells of
    names = list_names(records) if is_folder else []
    recorded = {name for name in names if table_name.decode(name) is not None}
    found = []
    for name in sorted(recorded.union(list_names(tables))):
        decoded = table_name.decode(name)
        if decoded is not None and (name in recorded or (tables / name).is_dir()):
            found.append((decoded, TableFolder(tables / name)))
    return found


def list_names(path: Path) -> list[str]:
    """Names in a folder; none where it does not exist.

    Raises:
        StorageError: it cannot be listed.
    """
    try:
        return os.listdir(path)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(error, path, "list the folder") from error


@lru_cache(maxsize=128)
def _latest_of(names: tuple[str, ...]) -> tuple[int, int]:
    """The last version that is stored, and the last that was committed: each statement lists names anew."""
    stored, commits = _parse_versions(names, parse_file_name), _parse_versions(names, parse_commit_name)
    return max(stored, default=NO_VERSION), max(commits, default=NO_VERSION)


def _parse_versions(names: Sequence[str], parse: Callable[[str], int | None]) -> list[int]:
    return sorted(version for name in names if (version := parse(name)) is not None)


def give_up(deadline: float, path: Path) -> None:
    """Pause before another try, or stop trying.

    Raises:
        StorageError: the deadline has passed.
    """
    if time.monotonic() > deadline:
        raise StorageError("cannot be held: versions come and go too quickly; try again", path)
    time.sleep(0.001)


def _open_lock(folder: TableFolder, version: int) -> LockFile | None:
    try:
        return LockFile(folder.lock)
    except FileNotFoundError:
        return None


def _pin(folder: TableFolder, version: int, lock: LockFile) -> Pin | None:
    """Lock first, then read: what exists under the lock stays."""
    if not lock.try_shared(version):
        return None  # vacuum is removing it
    if version == NO_VERSION:
        return Pin(version, None, lock)
    try:
        return Pin(version, folder.read(version), lock)
    except FileNotFoundError:
        return None


def _is_dropped(folder: TableFolder, version: int) -> bool:
    try:
        return folder.read(version).dropped
    except FileNotFoundError:
        return True
