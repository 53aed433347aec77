"""RENAME of a table or view: from one folder to another, in one step for all who look.

The new folder gets links to the fragments and a first version, which says from which folder and version it
comes (`origin`); nobody sees it before that folder has a version that says where it went (`heir`). Publishing
that one, which ends the old name, is the commit. What comes after is tidying: a second version without
origin, after which vacuum may remove the old folder.
"""

from __future__ import annotations

from contextlib import suppress

from bamquery.errors import CatalogError, CorruptionError, StorageError
from bamquery.storage.files.filesystem import FileSystem
from bamquery.storage.tables.folder import TableFolder, pin_latest
from bamquery.storage.tables.known_manifests import read_manifest
from bamquery.storage.tables.manifest import Manifest, Place
from bamquery.storage.tables.transaction import Transaction


def rename_table(filesystem: FileSystem, source: TableFolder, target: TableFolder, name: str) -> None:
    """Give what is in `source` the name that `target` is the folder of.

    The caller has made the target's folders and sees to it that nobody else makes anything there.

    Raises:
        CatalogError: there is nothing in `source`.
        ConflictError: another writer committed at the same time; nothing was changed.
        StorageError: the file system failed, or knows no links; nothing was changed.
    """
    pin = pin_latest(source)
    if pin is None or pin.manifest is None or pin.manifest.dropped:
        if pin is not None:
            pin.close()
        raise CatalogError("there is nothing to rename (any more)")
    manifest = pin.manifest
    leaving = Transaction(filesystem, source, pin)
    try:
        base = pin_latest(target)
        if base is None:
            raise CorruptionError("missing: it was removed while the table was being renamed", target.lock)
        arriving = Transaction(filesystem, target, base)
        try:
            arriving.encoding = manifest.encoding
            arriving.adopt(source, manifest.fragments)
            version = arriving.publish(
                name,
                "rename",
                manifest.schema,
                manifest.fragments,
                evolution=manifest.evolution,
                view=manifest.view,
                origin=Place(source.path.name, pin.version + 1),
            )
            heir = Place(target.path.name, version)
            leaving.publish(manifest.table, "drop", None, (), heir=heir)
        finally:
            arriving.rollback()
            arriving.close()
    finally:
        leaving.rollback()
        leaving.close()
    with suppress(StorageError):
        settle(filesystem, target)


def settle(filesystem: FileSystem, folder: TableFolder) -> None:
    """Make a table that came from another folder independent of it.

    Raises:
        StorageError: it cannot be, or somebody else changed the table at the same time.
    """
    version = folder.latest()
    try:
        if not version or read_manifest(folder.manifest(version)).origin is None:
            return
    except FileNotFoundError:
        return
    pin = pin_latest(folder)
    if pin is None or pin.manifest is None or pin.manifest.dropped or pin.manifest.origin is None:
        if pin is not None:
            pin.close()
        return
    _publish_again(Transaction(filesystem, folder, pin), pin.manifest, pin.manifest.table)


def respell_table(filesystem: FileSystem, folder: TableFolder, name: str) -> None:
    """The same name in other letters.

    Raises:
        CatalogError: there is nothing in the folder.
        ConflictError: another writer committed at the same time; nothing was changed.
    """
    pin = pin_latest(folder)
    manifest = None if pin is None else pin.manifest
    if pin is None or manifest is None or manifest.dropped:
        raise CatalogError(f'table "{name}" does not exist (any more)')
    _publish_again(Transaction(filesystem, folder, pin), manifest, name)


def _publish_again(transaction: Transaction, now: Manifest, name: str) -> None:
    """A version like the one before, without origin."""
    try:
        transaction.publish(name, "rename", now.schema, now.fragments, evolution=now.evolution, view=now.view)
    finally:
        transaction.rollback()
        transaction.close()


def is_awaited(folder: TableFolder, version: int) -> bool:
    """Whether a table elsewhere is only seen because of this version, which must stay for now."""
    try:
        heir = read_manifest(folder.manifest(version)).heir
        if heir is None:
            return False
        target = TableFolder(folder.path.parent / heir.folder)
        latest = target.latest()
        origin = read_manifest(target.manifest(latest)).origin if latest else None
    except FileNotFoundError:
        return False
    except CorruptionError:
        return True
    return origin == Place(folder.path.name, version)
