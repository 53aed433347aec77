"""Removes versions that nobody uses and files that no version needs, beside readers and writers at work."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bamquery.errors import CorruptionError, StorageError
from bamquery.statement_context.cancellation import check_cancelled
from bamquery.storage.files.filesystem import FileSystem
from bamquery.storage.files.locks import VACUUM, WRITERS, LockFile
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.tables.folder import TableFolder, list_names, table_folders
from bamquery.storage.tables.manifest import parse_commit_name, parse_file_name, writer_token
from bamquery.storage.tables.renaming import is_awaited, settle

_FRAGMENT_FILE: Final = re.compile(r"[0-9a-f]{15}-[0-9a-f]{4,8}(\.vectors)?\.arrow")
_DRAFT: Final = re.compile(r"[0-9a-f]{15}\.[0-9]+\.tmp")
_MARKER_DRAFT: Final = re.compile(r"bamquery\.json\.[0-9a-f]{15}\.tmp")


@dataclass
class VacuumReport:
    """What vacuum did."""

    versions: int = 0
    """Versions removed."""
    files: int = 0
    """Other files removed."""
    bytes: int = 0
    """Bytes given back."""
    tables: int = 0
    """Folders of dropped tables removed."""
    in_use: list[str] = field(default_factory=list)
    """Tables of which something could not go yet: read, being written, or vacuumed by somebody else."""


def vacuum_database(filesystem: FileSystem, path: Path) -> VacuumReport:
    """Vacuum every table; see `Database.vacuum`."""
    report = VacuumReport()
    failures: list[CorruptionError] = []
    for name in list_names(path):
        if is_marker_draft(name):
            _remove(filesystem, path / name, report)
    for _, folder in table_folders(path):
        with suppress(StorageError):
            settle(filesystem, folder)
    for name, folder in table_folders(path):
        check_cancelled()
        try:
            complete = vacuum_table(filesystem, folder, report)
            if not _is_alive(folder):
                complete = remove_dead_folder(filesystem, path / "bamquery.json", folder, report)
        except CorruptionError as error:
            failures.append(error)
            continue
        if not complete:
            report.in_use.append(name)
    if failures:
        raise failures[0]
    return report


def vacuum_table(filesystem: FileSystem, folder: TableFolder, report: VacuumReport) -> bool:
    """Remove what one table can do without; False where something has to wait."""
    folder.require_no_links()
    try:
        lock = LockFile(folder.lock, exclusive=True)
    except FileNotFoundError:
        return True  # never finished, or already half removed
    with lock:
        if not lock.try_exclusive(VACUUM):
            return False
        folder.read_latest()  # where that is damaged, the versions before it are what is left
        complete = _remove_versions(filesystem, folder, lock, report)
        return _remove_unreferenced(filesystem, folder, lock, report) and complete


def remove_dead_folder(
    filesystem: FileSystem, marker: Path, folder: TableFolder, report: VacuumReport | None = None
) -> bool:
    """Remove the folder of a table that was dropped or never came to be; False where it is in use.

    Nobody can create a table meanwhile, and nobody holds any lock of this one.
    """
    folder.require_no_links()
    report = VacuumReport() if report is None else report
    with LockFile(marker, exclusive=True) as making:
        if not making.try_exclusive(0) or not _only_ours(folder):
            return False
        try:
            lock = LockFile(folder.lock, exclusive=True)
        except FileNotFoundError:
            lock = None
        try:
            if lock is not None and not lock.try_exclusive(0, 0):
                return False
            if _is_alive(folder) or len(folder.versions()) > 1:
                return False
            if any(is_awaited(folder, version) for version in folder.versions()):
                return False
            _remove_folder(filesystem, folder, report)
            report.tables += 1
            return True
        finally:
            if lock is not None:
                lock.close()


def is_marker_draft(name: str) -> bool:
    """True for what the creation of a database leaves where it is killed."""
    return _MARKER_DRAFT.fullmatch(name) is not None


def is_draft(name: str) -> bool:
    """True for the name of a manifest that is being written."""
    return _DRAFT.fullmatch(name) is not None


def is_version_file(name: str) -> bool:
    """True for the names of a manifest and of what says that it was committed."""
    return parse_file_name(name) is not None or parse_commit_name(name) is not None


def is_fragment_file(name: str) -> bool:
    """True for the name of a fragment's file."""
    return _FRAGMENT_FILE.fullmatch(name) is not None


def _remove_versions(
    filesystem: FileSystem, folder: TableFolder, lock: LockFile, report: VacuumReport
) -> bool:
    """Remove all versions but the latest and those in use; True if only the latest is left."""
    complete = True
    older = folder.versions()[:-1]
    if older:
        # The version that stays must be safe first: whoever published it may have died before its sync.
        filesystem.sync_directory(folder.manifests)
    for version in older:
        check_cancelled()  # as after a crash here, the next vacuum goes on
        # The version before it must be free as well. A writer based on that one will try to publish this one,
        # and must find the name taken.
        if is_awaited(folder, version) or not lock.try_exclusive(version - 1, 2):
            complete = False
            continue
        filesystem.remove(folder.manifest(version))
        report.versions += 1
        lock.unlock(version - 1, 2)
    for version in folder.commits()[:-1]:
        filesystem.remove(folder.commit(version))
    return complete


def _remove_unreferenced(
    filesystem: FileSystem, folder: TableFolder, lock: LockFile, report: VacuumReport
) -> bool:
    """Remove files that no version names and no live writer wrote; True if no such file is left."""
    # First the files, then the writers, then the versions: a writer that is gone by the second step has
    # published before the third what it ever will.
    fragments = [name for name in list_names(folder.fragments) if is_fragment_file(name)]
    drafts = [name for name in list_names(folder.manifests) if is_draft(name)]
    alive = {
        token
        for token in {writer_token(name) for name in fragments + drafts}
        if token is not None and lock.held_by_others(WRITERS + token)
    }
    referenced = {name for entry in _stored_entries(folder) for name in (entry.data_name, entry.vectors_name)}
    unwanted = [folder.fragments / name for name in fragments if name not in referenced]
    unwanted += [folder.manifests / name for name in drafts]
    removable = [path for path in unwanted if writer_token(path.name) not in alive]
    if removable and folder.manifests.is_dir():
        # A removed version must not come back after a crash without its fragments. Also where this run
        # removed none: an earlier one may have died before its sync.
        filesystem.sync_directory(folder.manifests)
    for path in removable:
        check_cancelled()
        _remove(filesystem, path, report)
    return len(removable) == len(unwanted)


def _stored_entries(folder: TableFolder) -> Iterable[FragmentEntry]:
    for version in folder.versions():
        with suppress(FileNotFoundError):
            yield from folder.read(version).fragments


def _is_alive(folder: TableFolder) -> bool:
    """True if the latest version is one that can be read; CorruptionError if that cannot be known."""
    manifest = folder.read_latest()
    return manifest is not None and not manifest.dropped


def _only_ours(folder: TableFolder) -> bool:
    """False where somebody put files of another kind into the table's folder."""
    return (
        set(list_names(folder.path)) <= {"manifests", "fragments", "lock"}
        and all(is_fragment_file(name) for name in list_names(folder.fragments))
        and all(is_draft(name) or is_version_file(name) for name in list_names(folder.manifests))
    )


def _remove_folder(filesystem: FileSystem, folder: TableFolder, report: VacuumReport) -> None:
    if folder.versions() and folder.record.parent.is_dir():
        filesystem.remove(folder.record)
        # Or a crash may bring it back without the version that is removed next.
        filesystem.sync_directory(folder.record.parent)
    for version in folder.commits():
        filesystem.remove(folder.commit(version))
    for version in folder.versions():  # none, or the one that says "dropped"
        # It goes last: after a crash no older one may come back without it.
        filesystem.sync_directory(folder.manifests)
        filesystem.remove(folder.manifest(version))
        report.versions += 1
    for inner in (folder.fragments, folder.manifests):
        for name in list_names(inner):
            _remove(filesystem, inner / name, report)
        filesystem.remove_directory(inner)
    filesystem.remove(folder.lock)
    filesystem.remove_directory(folder.path)


def _remove(filesystem: FileSystem, path: Path, report: VacuumReport) -> None:
    size = 0
    with suppress(OSError):
        size = path.lstat().st_size
    filesystem.remove(path)
    report.files += 1
    report.bytes += size
