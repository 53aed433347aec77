"""A database: a folder with a marker file and a folder of tables."""

# ruff: noqa: PLC0415 (what reads, writes and tends tables is imported with the first that needs it)

from __future__ import annotations

import os
import shutil
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from bamquery.closeable import Closeable
from bamquery.errors import CatalogError, StorageError
from bamquery.storage.database.folder import MARKER, create_folder, read_marker, require_unused
from bamquery.storage.database.temporary import make_temporary
from bamquery.storage.files.filesystem import FileSystem, PosixFileSystem, storage_error
from bamquery.storage.files.locks import LockFile
from bamquery.storage.files.mapped_files import MAPPED_FILES
from bamquery.text.identifiers import fold_case, suggestion

if TYPE_CHECKING:
    from datetime import datetime

    from bamquery.storage.database.check import CheckReport
    from bamquery.storage.format.layout import Encoding
    from bamquery.storage.fragments.schema_evolution import ColumnRule
    from bamquery.storage.tables.folder import TableFolder
    from bamquery.storage.tables.manifest import Manifest, Operation
    from bamquery.storage.tables.snapshot import FragmentCache, Snapshot
    from bamquery.storage.tables.stored_view import StoredView
    from bamquery.storage.tables.table import Table
    from bamquery.storage.tables.transaction import Transaction
    from bamquery.storage.tables.vacuum import VacuumReport
    from bamquery.storage.tables.writer import TableWriter

_KIND_TABLE: Final = "table"
_KIND_VIEW: Final = "view"
_MOST_FOLDERS: Final = 256
"""Of names whose folders are known."""


class Database(Closeable):
    """An open database. Holds no locks; any number of processes may open one at the same time.

    A context manager; thread-safe.
    """

    def __init__(self, path: Path, filesystem: FileSystem, *, held: LockFile | None = None) -> None:
        """Use `Database.open`; `held` is the lock of a temporary one."""
        self.path = path
        self._filesystem = filesystem
        self._caches: dict[Path, FragmentCache] = {}
        self._folders: dict[str, TableFolder] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._held = held
        self._remove = weakref.finalize(self, _remove_tree, path, os.getpid()) if held is not None else None

    @classmethod
    def open(cls, path: str | Path, filesystem: FileSystem | None = None, *, create: bool = True) -> Database:
        """Open the database in folder `path`, made if there is none and `create` is true.

        `:memory:` is a temporary folder that lives until `close`.

        Raises:
            StorageError: the path is a file, a folder with other content, or a later BamQuery's database;
                or there is none and `create` is false.
        """
        if str(path) == ":memory:":
            plain = filesystem or PosixFileSystem()
            folder, held = make_temporary(lambda folder: create_folder(folder, plain), MARKER)
            return cls(folder, filesystem or PosixFileSystem(folder), held=held)
        if not str(path):
            raise StorageError("the path is empty: name the database's folder, or . for this one")
        folder = Path(path).absolute()
        filesystem = filesystem or PosixFileSystem(folder)
        try:
            if folder.exists() and not folder.is_dir():
                raise StorageError("a file, not a database: name a folder", folder)
        except OSError as error:  # of a folder above that may not be searched, or too long a name
            raise storage_error(error, folder, "open the database") from error
        try:
            read_marker(folder)
        except FileNotFoundError:
            from bamquery.storage.tables.folder import list_names

            names = list_names(folder)
            if (folder / MARKER).exists():  # another process has made it meanwhile
                read_marker(folder)
                return cls(folder, filesystem)
            require_unused(folder, names)
            if not create:
                raise StorageError("there is no database", folder) from None
            create_folder(folder, filesystem)
        return cls(folder, filesystem)

    @property
    def is_temporary(self) -> bool:
        """Whether it goes when it is closed: `:memory:`."""
        return self._held is not None

    def table_names(self) -> list[str]:
        """Names of all tables, as written, sorted without regard to case.

        A table whose manifest is damaged is listed (in lower case): it is there, and using it says what is
        wrong.
        """
        return self._names(lambda manifest: manifest.is_table, damaged=True)

    def view_names(self) -> list[str]:
        """Names of all views, as written, sorted without regard to case."""
        return self._names(lambda manifest: manifest.view is not None, damaged=False)

    def has_table(self, name: str) -> bool:
        """True if there is a table of this name.

        Raises:
            CatalogError: no table can have such a name. CorruptionError: its manifest is damaged.
        """
        manifest = self._folder(name).read_latest()
        return manifest is not None and manifest.is_table

    def hold(self, name: str) -> Snapshot | None:
        """The latest version of the table of this name; None where there is none, but a view perhaps.

        Raises:
            CatalogError: nothing can have such a name. CorruptionError: its manifest is damaged.
        """
        from bamquery.storage.tables.folder import pin_latest
        from bamquery.storage.tables.snapshot import Snapshot

        folder = self._folder(name)
        pin = pin_latest(folder)
        if pin is None:
            return None
        if pin.manifest is None or not pin.manifest.is_table:
            pin.close()
            return None
        return Snapshot(folder, pin, self._cache(folder))

    def hold_version(self, name: str, version: int, created_at: datetime) -> Snapshot:
        """A version of a table, by its number and the time of its commit.

        Raises:
            CatalogError: it is not there any more. CorruptionError: its manifest is damaged.
        """
        from bamquery.storage.tables.folder import pin_version
        from bamquery.storage.tables.snapshot import Snapshot

        folder = self._folder(name)
        pin = pin_version(folder, version)
        manifest = None if pin is None else pin.manifest
        if pin is None or manifest is None or not manifest.is_table or manifest.created_at != created_at:
            if pin is not None:
                pin.close()
            raise CatalogError(
                f'version {version} of table "{name}", of {created_at:%Y-%m-%d %H:%M:%S} UTC, is not there '
                "any more: VACUUM removes versions that nobody holds. Ask the table as it is now"
            )
        return Snapshot(folder, pin, self._cache(folder))

    def view(self, name: str) -> StoredView | None:
        """The view of this name, without regard to case; None where there is none.

        Raises:
            CatalogError: nothing can have such a name. CorruptionError: its manifest is damaged.
        """
        manifest = self._folder(name).read_latest()
        return None if manifest is None else manifest.view

    def create_view(self, name: str, view: StoredView, *, or_replace: bool = False) -> None:
        """Put a view under a name; with `or_replace`, in place of the view that has it.

        Raises:
            CatalogError: there is a table of this name, or a view and it is not to be replaced.
            ConflictError: another writer committed at the same time.
        """
        from bamquery.storage.database.table_creation import remove_unused_folders

        folder = self._folder(name)
        transaction, _ = self._begin(folder, _KIND_VIEW if or_replace else None)
        try:
            transaction.publish(name, "view", None, (), view=view)
        except BaseException:
            transaction.rollback()
            transaction.close()
            remove_unused_folders(self._filesystem, self.path, folder)
            raise
        transaction.close()

    def drop_view(self, name: str) -> None:
        """End a view.

        Raises:
            CatalogError: there is none of this name; suggests the nearest one.
            ConflictError: another writer committed at the same time.
        """
        from bamquery.storage.tables.folder import pin_latest
        from bamquery.storage.tables.transaction import Transaction

        folder = self._folder(name)
        pin = pin_latest(folder)
        manifest = None if pin is None else pin.manifest
        if pin is None or manifest is None or manifest.view is None:
            if pin is not None:
                pin.close()
            raise self._missing_error(name, folder, "view")
        transaction = Transaction(self._filesystem, folder, pin)
        try:
            transaction.publish(manifest.table, "drop", None, ())
        except BaseException:
            transaction.rollback()
            raise
        finally:
            transaction.close()

    def table(self, name: str) -> Table:
        """The table of this name, without regard to case.

        Raises:
            CatalogError: there is none; suggests the nearest name.
        """
        from bamquery.storage.tables.table import Table

        folder = self._folder(name)
        manifest = folder.read_latest()
        if manifest is None or not manifest.is_table:
            raise self._missing_error(name, folder, "table")
        return Table(manifest.table, folder, self._filesystem, self._cache(folder))

    def _cache(self, folder: TableFolder) -> FragmentCache:
        from bamquery.storage.tables.snapshot import FragmentCache

        with self._lock:
            found = self._caches.get(folder.path)
            if found is None:
                found = self._caches[folder.path] = FragmentCache()
            return found

    def create_table(
        self,
        name: str,
        schema: pa.Schema,
        *,
        or_replace: bool = False,
        rules: Sequence[ColumnRule] = (),
        encoding: Encoding = "plain",
    ) -> TableWriter:
        """A writer for a new table's rows; nothing can be seen before its commit.

        With `or_replace`, the commit replaces a table of this name as it is now, in one step. `rules` has
        one for each column, or none at all. `encoding` is how columns may be stored.

        Raises:
            CatalogError: there is a table of this name, or no table can be called so.
            StorageError: tables cannot have this schema, or the folders cannot be made.
        """
        from bamquery.storage.database.table_creation import remove_unused_folders
        from bamquery.storage.format.storable_types import require_stored_schema
        from bamquery.storage.tables.writer import TableWriter

        folder = self._folder(name)
        require_stored_schema(schema)
        schema = pa.schema([pa.field(field.name, field.type) for field in schema])  # metadata stays behind
        if not len(schema):
            raise StorageError(f'table "{name}" needs at least one column')
        transaction, operation = self._begin(folder, _KIND_TABLE if or_replace else None)
        transaction.encoding = encoding
        aborted = partial(remove_unused_folders, self._filesystem, self.path, folder)
        return TableWriter(transaction, name, operation, schema, aborted=aborted, rules=rules)

    def drop_table(self, name: str) -> None:
        """End a table; snapshots that are open stay readable, vacuum removes the files after them.

        Raises:
            CatalogError: there is no such table.
            ConflictError: another writer committed at the same time.
        """
        table = self.table(name)
        table.drop()
        with self._lock:
            self._caches.pop(table.folder.path, None)

    def rename(self, name: str, new: str) -> None:
        """Give a table or view another name, in one step; snapshots that are open stay readable.

        Raises:
            CatalogError: there is nothing of that name, or something of the new one.
            ConflictError: another writer committed at the same time; nothing was changed.
            StorageError: a table is being made all the while, or the file system failed.
        """
        from bamquery.storage.database.table_creation import (
            make_table_folders,
            remove_unused_folders,
            require_free,
        )
        from bamquery.storage.tables.renaming import rename_table, respell_table

        source, target = self._folder(name), self._folder(new)
        manifest = source.read_latest()
        if manifest is None or manifest.dropped:
            raise self._missing_error(name, source, _KIND_TABLE)
        if source.path == target.path:
            if manifest.table != new:
                respell_table(self._filesystem, source, new)
            return
        require_free(target, None)
        try:
            with LockFile(self.path / MARKER, exclusive=True) as making:
                making.wait_exclusive(0, "rename while tables are being made")
                require_free(target, None)
                make_table_folders(self._filesystem, self.path, target)
                rename_table(self._filesystem, source, target, new)
        except BaseException:
            remove_unused_folders(self._filesystem, self.path, target)
            raise
        with self._lock:
            self._caches.pop(source.path, None)

    def vacuum(self) -> VacuumReport:
        """Remove versions that are neither the latest nor in use, and files that no version needs.

        Raises:
            CorruptionError: a manifest is damaged, so what it needs is unknown: nothing of that table was
                removed; the others are done.
        """
        from bamquery.storage.tables.vacuum import vacuum_database

        self._require_there()
        MAPPED_FILES.forget(self.path)  # a file that is mapped keeps its room
        return vacuum_database(self._filesystem, self.path)

    def check(self, progress: Callable[[int, int], None] = lambda done, total: None) -> CheckReport:
        """Read every version and fragment back; `progress` hears of bytes checked and bytes in total."""
        from bamquery.storage.database.check import check_database
        from bamquery.storage.tables.known_manifests import KNOWN_MANIFESTS

        self._require_there()
        MAPPED_FILES.forget(self.path)  # pages that are mapped are not read from the device again
        KNOWN_MANIFESTS.forget(self.path)
        return check_database(self.path, progress)

    def close(self) -> None:
        """Close it, and remove a temporary one; closing twice is harmless."""
        self._closed = True
        self._caches = {}
        MAPPED_FILES.forget(self.path)
        if self._remove is not None:
            self._remove()
        if self._held is not None:
            self._held.close()

    def _require_open(self) -> None:
        if self._closed:
            raise StorageError("the database is closed", self.path)

    def _require_there(self) -> None:
        self._require_open()
        if not os.path.lexists(self.path / MARKER):
            raise StorageError(
                f"there is no database any more (no {MARKER}): its folder was removed or moved while it was "
                "open; connect again",
                self.path,
            )

    def _folder(self, name: str) -> TableFolder:
        self._require_open()
        folder = self._folders.get(name)
        if folder is None:
            from bamquery.storage.tables import name as table_name
            from bamquery.storage.tables.folder import TableFolder

            folder = TableFolder(self.path / "tables" / table_name.encode(name))
            if len(self._folders) >= _MOST_FOLDERS:
                self._folders = {}
            self._folders[name] = folder
        return folder

    def _names(self, wanted: Callable[[Manifest], bool], *, damaged: bool) -> list[str]:
        from bamquery.storage.tables.folder import table_folders

        self._require_there()
        names = []
        for folded, folder in table_folders(self.path):
            try:
                manifest = folder.read_latest()
            except StorageError:
                if damaged:
                    names.append(folded)
                continue
            if manifest is not None and wanted(manifest):
                names.append(manifest.table)
        return sorted(names, key=lambda name: (fold_case(name), name))

    def _begin(self, folder: TableFolder, replaced: str | None) -> tuple[Transaction, Operation]:
        """A transaction that makes a first version, or one in place of a thing of that kind."""
        from bamquery.storage.database.table_creation import begin_creation, require_free

        require_free(folder, replaced)
        self._require_there()
        return begin_creation(self._filesystem, self.path, folder, replaced)

    def _missing_error(self, name: str, folder: TableFolder, kind: str) -> CatalogError:
        """Why there is no table, or no view, of this name."""
        manifest = folder.read_latest()
        if manifest is not None and not manifest.dropped:
            return CatalogError(f'"{manifest.table}" is a {manifest.kind}, not a {kind}')
        names = self.table_names() if kind == _KIND_TABLE else self.view_names()
        return CatalogError(f'{kind} "{name}" does not exist.{suggestion(name, names)}')


def _remove_tree(path: Path, owner: int) -> None:
    if os.getpid() == owner:  # not the parent's folder, in a forked child
        shutil.rmtree(path, ignore_errors=True)
