"""One change of one table: files are written beside what is there, then a manifest makes them count.

The order is the whole of it. Fragment files are synced, then their names, then the manifest's bytes; only
then is it published under the next version's name, which fails if another writer was first; the change is
committed once that name is synced too. A crash anywhere leaves the previous version or this one.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from bamquery.errors import ConflictError, CorruptionError, StorageError
from bamquery.storage.files.filesystem import FileSystem
from bamquery.storage.files.locks import TOKEN_BITS, WRITERS, LockFile
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.format.layout import DEFAULT_ENCODING, Encoding
from bamquery.storage.fragments.encoded_columns import EncodedRows
from bamquery.storage.fragments.schema_evolution import NO_EVOLUTION, Evolution
from bamquery.storage.fragments.writer import RowSource, write_fragment
from bamquery.storage.tables.folder import Pin, TableFolder
from bamquery.storage.tables.manifest import Manifest, Operation, Place, fragment_id, writer_token
from bamquery.storage.tables.stored_view import StoredView


class Transaction:
    """A writer's files, locks and base version. For one thread at a time.

    It owns `base` and releases it; vacuum sees from its lock that its files belong to a live writer.
    """

    def __init__(
        self, filesystem: FileSystem, folder: TableFolder, base: Pin, making: LockFile | None = None
    ) -> None:
        """Take over `base`, and for a new table the lock that keeps its folders in place.

        Raises:
            CorruptionError: a folder of the table is a link; `base` is released then.
        """
        try:
            folder.require_no_links()
        except CorruptionError:
            base.close()
            raise
        self.base = base
        self.folder = folder
        now = base.manifest
        self.encoding: Encoding = DEFAULT_ENCODING if now is None or not now.is_table else now.encoding
        """How rows are stored from now on; the table's, unless it is set to another."""
        self.published = False
        """True once the new version can be seen; its files must stay from then on."""
        self._filesystem = filesystem
        self._making = making
        self._token = secrets.randbits(TOKEN_BITS)
        self._files: list[Path] = []
        self._fragments: list[str] = []
        self.base.lock.wait_shared(WRITERS + self._token, "announce a writer")

    def write(
        self, schema: pa.Schema, source: RowSource | EncodedRows, cancelled: Callable[[], bool]
    ) -> FragmentEntry:
        """Write and sync one fragment.

        Raises:
            StorageError: as `write_fragment`.
        """
        name = fragment_id(self._token, len(self._fragments))
        self._fragments.append(name)
        folder = self.folder.fragments
        files = [folder / f"{name}.arrow", folder / f"{name}.vectors.arrow"]
        self._files += files
        try:
            return write_fragment(
                self._filesystem, folder, name, schema, source, encoding=self.encoding, cancelled=cancelled
            )
        except Exception:
            self._discard(files)
            raise

    def adopt(self, folder: TableFolder, fragments: Sequence[FragmentEntry]) -> None:
        """Link the files of another table's fragments, under the names that they have.

        Raises:
            StorageError: the file system failed, or knows no links.
        """
        for entry in fragments:
            # Vacuum takes files of writers that are gone for litter until a version names them.
            token = writer_token(entry.data_name)
            assert token is not None
            self.base.lock.wait_shared(WRITERS + token, "announce a writer")
            for name in (entry.data_name, entry.vectors_name):
                target = self.folder.fragments / name
                if not target.exists():  # otherwise it is an older version's, and not ours to remove
                    self._files.append(target)
                self._filesystem.link(folder.fragments / name, target)
            self._fragments.append(entry.id)

    def publish(
        self,
        table: str,
        operation: Operation,
        schema: pa.Schema | None,
        fragments: Sequence[FragmentEntry],
        *,
        evolution: Evolution | None = None,
        view: StoredView | None = None,
        origin: Place | None = None,
        heir: Place | None = None,
    ) -> int:
        """Make the next version of the table from `fragments`, in this order; returns its number.

        Without `evolution`, versions that follow on one keep its.

        Raises:
            ConflictError: another writer made that version first.
            StorageError: the file system failed; where `published` is true by then, the version counts but
                may not survive a power failure.
        """
        version = self.base.version + 1
        if evolution is None:
            base = self.base.manifest
            follows = operation in ("append", "optimize")
            evolution = base.evolution if base is not None and follows else NO_EVOLUTION
        evolution, entries = evolution.drop_unused_versions(fragments)
        now = datetime.now(UTC)
        encoding = DEFAULT_ENCODING if schema is None else self.encoding
        manifest = Manifest(
            version, table, operation, now, schema, entries, evolution, view, origin, heir, encoding
        )
        if self._fragments:
            self._filesystem.sync_directory(self.folder.fragments)
        draft = self.folder.manifests / f"{self._token:0{TOKEN_BITS // 4}x}.{version}.tmp"
        self._files.append(draft)
        file = self._filesystem.create(draft)
        try:
            file.write_at(0, [manifest.to_bytes()])
            file.sync()
        finally:
            file.close()
        target = self.folder.manifest(version)
        # Set before the attempt, whose outcome can be left open (a network file system's lost answer): files
        # that nothing uses are vacuum's to remove, but files of a version that is visible would be lost data.
        self.published = True
        try:
            self._filesystem.publish(draft, target)
        except FileExistsError:
            self.published = False
            raise ConflictError(
                f"another writer has committed version {version} of table "
                f'"{table}" since this one began: nothing was changed, try again',
                target,
            ) from None
        try:
            self._filesystem.sync_directory(self.folder.manifests)
        except StorageError as error:
            raise StorageError(
                f"version {version} may not survive a power failure: {error}", target
            ) from error
        with suppress(StorageError):  # the commit is done; vacuum removes what stays
            self._filesystem.remove(draft)
        with suppress(StorageError):
            self._record(version)
        return version

    def rollback(self) -> None:
        """Remove what was written, unless it was published; what cannot be removed is left to vacuum."""
        if not self.published:
            self._discard(self._files)

    def _record(self, version: int) -> None:
        """Say by the names of empty files that the version and the table were committed.

        Never before the manifest's name is on stable storage, and without a sync of their own: a power
        failure may take these files, never the manifest alone.
        """
        with suppress(FileExistsError):
            self._filesystem.create(self.folder.commit(version)).close()
        if not os.path.lexists(self.folder.record):
            self._filesystem.make_directory(self.folder.record.parent)
            with suppress(FileExistsError):
                self._filesystem.create(self.folder.record).close()
        for older in self.folder.commits():
            if older < version:
                self._filesystem.remove(self.folder.commit(older))

    def _discard(self, files: Sequence[Path]) -> None:
        for path in files:
            with suppress(StorageError):
                self._filesystem.remove(path)

    def close(self) -> None:
        """Give up the locks, after which vacuum may remove what is not part of a version."""
        self.base.close()
        if self._making is not None:
            self._making.close()
