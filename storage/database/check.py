"""Reads a database back and names every file that is not what was written, and every file nobody needs."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.files.locks import WRITERS, LockFile
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.tables import name as table_name
from bamquery.storage.tables.folder import TableFolder, list_names, table_folders
from bamquery.storage.tables.manifest import RECORDS, Manifest, writer_token
from bamquery.storage.tables.vacuum import is_draft, is_fragment_file, is_marker_draft, is_version_file


@dataclass
class CheckReport:
    """What was read, and what was found."""

    tables: int = 0
    versions: int = 0
    fragments: int = 0
    bytes: int = 0
    """Bytes of fragments."""
    errors: list[StorageError] = field(default_factory=list)
    """Damage; each names its file."""
    litter: list[Path] = field(default_factory=list)
    """What no version needs and no live writer is making: vacuum removes it."""
    unknown: list[Path] = field(default_factory=list)
    """What BamQuery has not made and never touches."""

    @property
    def clean(self) -> bool:
        """True if nothing is damaged; litter does no harm."""
        return not self.errors


def check_database(path: Path, progress: Callable[[int, int], None]) -> CheckReport:
    """Check every table; see `Database.check`."""
    with ExitStack() as locks:
        check = _Check(path, locks)
        check.find()
        check.read(progress)
    return check.report


@dataclass(frozen=True)
class _Stored:
    """A fragment, and the schema that it was written with."""

    folder: TableFolder
    entry: FragmentEntry
    schema: pa.Schema


class _Check:
    """First finds everything, then reads the fragments; `locks` keep vacuum away from them meanwhile."""

    def __init__(self, path: Path, locks: ExitStack) -> None:
        self.report = CheckReport()
        self._path = path
        self._locks = locks
        self._stored: list[_Stored] = []

    def find(self) -> None:
        """Read all manifests; sort what else there is into litter and unknown."""
        for name in sorted(list_names(self._path)):
            if is_marker_draft(name):
                self.report.litter.append(self._path / name)
            elif name not in {"bamquery.json", "tables", RECORDS}:
                self.report.unknown.append(self._path / name)
        with LockFile(self._path / "bamquery.json") as marker:
            creating = marker.held_by_others(0)
        self._find_records()
        folders = [folder for _, folder in table_folders(self._path)]
        ours = {folder.path.name for folder in folders}
        for name in sorted(list_names(self._path / "tables")):
            if name not in ours:
                self.report.unknown.append(self._path / "tables" / name)
        for folder in folders:
            self._find_in_table(folder, creating)

    def _find_records(self) -> None:
        """What else is among the files that say which tables were committed."""
        records = self._path / RECORDS
        if records.is_symlink() or not records.is_dir():
            if os.path.lexists(records):
                self._error("damaged: not a folder; remove it, and the next commit makes one", records)
            return
        names = sorted(list_names(records))
        self.report.unknown += [records / name for name in names if table_name.decode(name) is None]

    def read(self, progress: Callable[[int, int], None]) -> None:
        """Read every fragment back."""
        total = sum(stored.entry.data_bytes + stored.entry.vectors_bytes for stored in self._stored)
        progress(0, total)
        for stored in self._stored:
            try:
                fragment = Fragment.open(stored.folder.fragments, stored.entry, stored.schema)
                self.report.errors += fragment.check()
            except StorageError as error:
                self.report.errors.append(error)
            self.report.fragments += 1
            self.report.bytes += stored.entry.data_bytes + stored.entry.vectors_bytes
            progress(self.report.bytes, total)

    def _find_in_table(self, folder: TableFolder, creating: bool) -> None:
        lock = self._open_lock(folder)
        try:
            folder.require_no_links()
        except CorruptionError as error:
            self.report.errors.append(error)
        # In vacuum's order: files, writers, versions.
        fragments = sorted(list_names(folder.fragments))
        manifests = sorted(list_names(folder.manifests))
        tokens = {token for name in fragments + manifests if (token := writer_token(name)) is not None}
        alive = {token for token in tokens if lock is not None and lock.held_by_others(WRITERS + token)}
        versions, damaged = self._read_versions(folder, lock)
        dead = not damaged and (not versions or versions[-1].dropped)
        if dead and not creating:
            self.report.litter.append(folder.path)
        if not dead:
            self.report.tables += 1
            if lock is None and folder.path.is_dir() and not os.path.lexists(folder.lock):
                self._error("missing: the table cannot be locked; create an empty file there", folder.lock)
        self.report.unknown += [
            folder.path / name
            for name in list_names(folder.path)
            if name not in {"manifests", "fragments", "lock"}
        ]
        needed = self._collect(folder, versions)
        for name in fragments:
            if not is_fragment_file(name):
                self.report.unknown.append(folder.fragments / name)
            elif name not in needed and writer_token(name) not in alive and not damaged:
                self.report.litter.append(folder.fragments / name)
        for name in manifests:
            if is_draft(name) and writer_token(name) not in alive:
                self.report.litter.append(folder.manifests / name)
            elif not is_draft(name) and not is_version_file(name):
                self.report.unknown.append(folder.manifests / name)

    def _open_lock(self, folder: TableFolder) -> LockFile | None:
        try:
            return self._locks.enter_context(LockFile(folder.lock))
        except FileNotFoundError:
            return None
        except StorageError as error:
            self.report.errors.append(error)
            return None

    def _read_versions(self, folder: TableFolder, lock: LockFile | None) -> tuple[list[Manifest], bool]:
        """The manifests that can be read, held in place; and whether there are others."""
        found = []
        damaged = False
        try:
            folder.latest()
        except StorageError as error:
            self.report.errors.append(error)
            damaged = True
        for version in folder.versions():
            if lock is not None and not lock.try_shared(version):
                continue  # vacuum is removing it
            try:
                found.append(folder.read(version))
            except FileNotFoundError:
                continue
            except StorageError as error:
                self.report.errors.append(error)
                damaged = True
            self.report.versions += 1
        return found, damaged

    def _collect(self, folder: TableFolder, versions: list[Manifest]) -> set[str]:
        """Note the versions' fragments, each once; returns the names of their files."""
        known: dict[str, _Stored] = {}
        for manifest in versions:
            for entry in manifest.fragments:
                assert manifest.schema is not None
                written = manifest.evolution.columns(manifest.schema, entry).written
                one = _Stored(folder, replace(entry, schema_version=None), written)
                other = known.setdefault(entry.id, one)
                if other.entry != one.entry or not other.schema.equals(written):
                    path = folder.manifest(manifest.version)
                    self._error(f"damaged: another version describes fragment {entry.id} otherwise", path)
        self._stored += known.values()
        return {name for one in known.values() for name in (one.entry.data_name, one.entry.vectors_name)}

    def _error(self, message: str, path: Path) -> None:
        self.report.errors.append(CorruptionError(message, path))
