"""A table: its versions, and the ways to change it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import pyarrow as pa

from bamquery.errors import CatalogError
from bamquery.storage.files.filesystem import FileSystem
from bamquery.storage.format.layout import Encoding
from bamquery.storage.fragments.schema_evolution import ColumnRule
from bamquery.storage.tables.alteration import Shape, add_column, drop_column, rename_column
from bamquery.storage.tables.folder import Pin, TableFolder, pin_latest, pin_version
from bamquery.storage.tables.manifest import Operation
from bamquery.storage.tables.optimize import OptimizeReport, SortedRows, optimize
from bamquery.storage.tables.snapshot import FragmentCache, Snapshot
from bamquery.storage.tables.transaction import Transaction
from bamquery.storage.tables.writer import TableWriter


@dataclass(frozen=True)
class Version:
    """What one version of a table is."""

    version: int
    operation: Operation
    created_at: datetime
    rows: int


@dataclass(frozen=True)
class Table:
    """A table of a database. Holds nothing: each call sees the version that is the latest by then."""

    name: str
    """As its creator wrote it."""
    folder: TableFolder
    filesystem: FileSystem
    cache: FragmentCache = field(default_factory=FragmentCache, compare=False)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """The latest version, or the one asked for, held until it is closed.

        Raises:
            CatalogError: the table was dropped, or the version is not stored (any more).
            CorruptionError: its manifest is damaged.
        """
        if version is None:
            return Snapshot(self.folder, self._pin_latest(), self.cache)
        pin = pin_version(self.folder, version)
        if pin is None or pin.manifest is None or not pin.manifest.is_table:
            if pin is not None:
                pin.close()
            stored = ", ".join(map(str, self.folder.versions())) or "none"
            raise CatalogError(f'version {version} of table "{self.name}" is not stored; stored: {stored}')
        return Snapshot(self.folder, pin, self.cache)

    def versions(self) -> list[Version]:
        """The versions that are stored, oldest first, the table's end included.

        Raises:
            CorruptionError: a manifest is damaged.
        """
        found = []
        for version in self.folder.versions():
            try:
                manifest = self.folder.read(version)
            except FileNotFoundError:  # vacuum took it meanwhile
                continue
            found.append(Version(version, manifest.operation, manifest.created_at, manifest.rows))
        return found

    def append(self) -> TableWriter:
        """A writer of further rows, based on the latest version.

        Raises:
            CatalogError: the table was dropped.
        """
        transaction = self._begin()
        manifest = transaction.base.manifest
        assert manifest is not None
        assert manifest.schema is not None
        return TableWriter(transaction, manifest.table, "append", manifest.schema)

    def drop(self) -> None:
        """End the table; vacuum removes its files once nobody reads them.

        Raises:
            CatalogError: it was dropped already.
            ConflictError: another writer committed at the same time.
        """
        transaction = self._begin()
        try:
            transaction.publish(self.name, "drop", None, ())
        except BaseException:
            transaction.rollback()
            raise
        finally:
            transaction.close()

    def optimize(
        self,
        cluster_by: Sequence[str] = (),
        memory_limit: int | None = None,
        sorted_rows: SortedRows | None = None,
        *,
        relieve: Callable[[], None] = lambda: None,
    ) -> OptimizeReport:
        """Merge small fragments; with `cluster_by`, put all rows in ascending order of these columns.

        Rows keep their order among equals, and everywhere without `cluster_by`. Merging takes the memory of
        a few pieces of a column; clustering what `bamquery.storage.tables.clustering` says, up to
        `memory_limit` bytes (None: half of the machine's); where that does not fit in half of it,
        `sorted_rows` are written as they come. A table that is in order already is only merged. `relieve` is
        called between pieces, to give back what allocators keep.

        Raises:
            CatalogError: the table was dropped, or there is no such column.
            MemoryLimitError: the columns to cluster by do not fit, and nobody else sorts.
            ConflictError: another writer committed meanwhile; nothing was changed, nothing is lost.
            CorruptionError: a fragment is damaged; nothing was changed.
        """
        if cluster_by and self._is_aged():
            # Sorting goes by columns that all fragments have, so those that are older are written anew first.
            self.optimize(memory_limit=memory_limit, relieve=relieve)
        transaction = self._begin()
        try:
            snapshot = self.snapshot(transaction.base.version)
        except BaseException:
            transaction.close()
            raise
        with snapshot:
            return optimize(snapshot, transaction, cluster_by, memory_limit, sorted_rows, relieve=relieve)

    def add_column(
        self,
        name: str,
        type_: pa.DataType,
        rule: ColumnRule = ColumnRule(),  # noqa: B008 (immutable)
    ) -> None:
        """Add a column behind the others; in the rows that are there it has `rule.initial`.

        Raises:
            CatalogError: the table was dropped, or has such a column. StorageError: no column can have that
                type. ConflictError: another writer committed at the same time.
        """
        self._alter(lambda shape: add_column(shape, name, type_, rule))

    def drop_column(self, name: str) -> None:
        """Take a column away; what it held stays in old fragments until OPTIMIZE.

        Raises:
            CatalogError: the table was dropped, has no such column, or no other one.
            ConflictError: another writer committed at the same time.
        """
        self._alter(lambda shape: drop_column(shape, name))

    def rename_column(self, name: str, new: str) -> None:
        """Give a column another name.

        Raises:
            CatalogError: the table was dropped, has no such column, or one of the new name.
            ConflictError: another writer committed at the same time.
        """
        self._alter(lambda shape: rename_column(shape, name, new))

    def set_encoding(self, encoding: Encoding) -> None:
        """Store what is written from now on so; OPTIMIZE rewrites what is there.

        Raises:
            CatalogError: the table was dropped.
            ConflictError: another writer committed at the same time.
        """
        self._alter(lambda shape: replace(shape, encoding=encoding))

    def _alter(self, change: Callable[[Shape], Shape]) -> None:
        transaction = self._begin()
        try:
            manifest = transaction.base.manifest
            assert manifest is not None
            assert manifest.schema is not None
            now = manifest.evolution, manifest.fragments, manifest.encoding
            shape = change(Shape(self.name, manifest.schema, *now))
            if shape.schema != manifest.schema or shape.encoding != manifest.encoding:
                transaction.encoding = shape.encoding
                transaction.publish(
                    self.name, "alter", shape.schema, shape.fragments, evolution=shape.evolution
                )
        except BaseException:
            transaction.rollback()
            raise
        finally:
            transaction.close()

    def _is_aged(self) -> bool:
        with self.snapshot() as snapshot:
            return any(entry.schema_version is not None for entry in snapshot.entries)

    def _begin(self) -> Transaction:
        pin = self._pin_latest()
        try:
            return Transaction(self.filesystem, self.folder, pin)
        except BaseException:
            pin.close()
            raise

    def _pin_latest(self) -> Pin:
        pin = pin_latest(self.folder)
        if pin is None or pin.manifest is None or not pin.manifest.is_table:
            if pin is not None:
                pin.close()
            raise CatalogError(f'table "{self.name}" does not exist (any more)')
        return pin
