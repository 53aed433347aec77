"""How a table or view comes to be: folders on stable storage first, then its first version."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from bamquery.errors import CatalogError, CorruptionError, StorageError
from bamquery.storage.database.folder import MARKER
from bamquery.storage.files.filesystem import FileSystem
from bamquery.storage.files.locks import LockFile
from bamquery.storage.tables.folder import TableFolder, pin_latest
from bamquery.storage.tables.manifest import Operation
from bamquery.storage.tables.transaction import Transaction
from bamquery.storage.tables.vacuum import remove_dead_folder


def require_free(folder: TableFolder, replaced: str | None) -> None:
    """See that the name is free, or taken by a thing of the kind that is to be replaced.

    Raises:
        CatalogError: it is taken by another.
    """
    manifest = folder.read_latest()
    if manifest is None or manifest.dropped or manifest.kind == replaced:
        return
    if replaced is not None:
        raise CatalogError(
            f'"{manifest.table}" is a {manifest.kind}, which no {replaced} can replace: drop it'
        )
    raise CatalogError(
        f'{manifest.kind} "{manifest.table}" exists already: drop or replace it, or name another'
    )


def begin_creation(
    filesystem: FileSystem, root: Path, folder: TableFolder, replaced: str | None
) -> tuple[Transaction, Operation]:
    """Folders below `root`, and a transaction that makes a first version or one in place of another.

    Raises:
        CatalogError: the name is taken by now. StorageError: the folders cannot be made.
    """
    making = LockFile(root / MARKER)
    try:
        making.wait_shared(0, "create a table while the folders of a dropped one are removed")
        make_table_folders(filesystem, root, folder)
        return _begin(filesystem, folder, replaced, making)
    except BaseException:
        making.close()
        remove_unused_folders(filesystem, root, folder)
        raise


def make_table_folders(filesystem: FileSystem, root: Path, folder: TableFolder) -> None:
    """Folders and lock of a table, each on stable storage before anything is put into it."""
    folder.require_no_links()
    tables = root / "tables"
    if not tables.is_dir():
        # The marker first: a folder of tables without it would not be taken for a database.
        filesystem.sync_directory(root)
        filesystem.make_directory(tables)
    # Also where they exist: another process may have made them and died before its sync.
    filesystem.sync_directory(root)
    filesystem.make_directory(folder.path)
    filesystem.sync_directory(tables)
    filesystem.make_directory(folder.manifests)
    filesystem.make_directory(folder.fragments)
    if not folder.lock.exists():
        with suppress(FileExistsError):
            filesystem.create(folder.lock).close()
    filesystem.sync_directory(folder.path)


def remove_unused_folders(filesystem: FileSystem, root: Path, folder: TableFolder) -> None:
    """Remove the folders of a table that did not come to be, where nobody else uses them."""
    with suppress(StorageError):
        remove_dead_folder(filesystem, root / MARKER, folder)


def _begin(
    filesystem: FileSystem, folder: TableFolder, replaced: str | None, making: LockFile
) -> tuple[Transaction, Operation]:
    pin = pin_latest(folder)
    if pin is None:
        raise CorruptionError("missing: it was removed while the table was being created", folder.lock)
    try:
        exists = pin.manifest is not None and not pin.manifest.dropped
        if exists:
            require_free(folder, replaced)
        return Transaction(filesystem, folder, pin, making), "replace" if exists else "create"
    except BaseException:
        pin.close()
        raise
