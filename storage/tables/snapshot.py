"""One version of a table, held in place while it is read."""

from __future__ import annotations

import operator
import threading
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import pyarrow as pa

from bamquery.closeable import Closeable
from bamquery.errors import StorageError
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.schema_evolution import NO_EVOLUTION, Evolution, FragmentColumns
from bamquery.storage.tables.folder import Pin, TableFolder

_Key: TypeAlias = tuple[str, tuple[int, ...], tuple[str, ...]]


class FragmentCache:
    """Opened fragments of one table, so that their zone maps are read once.

    Fragments never change and their ids never repeat. Those of the version read last stay; others live as
    long as somebody uses them. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: WeakValueDictionary[_Key, Fragment] = WeakValueDictionary()
        self._latest: tuple[Fragment, ...] = ()
        self._latest_of: tuple[object, object, object] | None = None
        self._latest_facts: dict[str, Any] = {}

    def open(
        self,
        folder: TableFolder,
        entries: tuple[FragmentEntry, ...],
        schema: pa.Schema,
        evolution: Evolution = NO_EVOLUTION,
    ) -> tuple[Fragment, ...]:
        """The fragments of a version, in order.

        Raises:
            CorruptionError, StorageError: one cannot be opened; names the file.
        """
        asked = (entries, schema, evolution)
        with self._lock:
            # Manifests that were parsed before are the same objects.
            if self._latest_of is not None and all(map(operator.is_, asked, self._latest_of)):
                return self._latest
            self._latest_of = None
            self._latest_facts = {}
            self._latest = tuple(
                self._open(folder, entry, evolution.columns(schema, entry)) for entry in entries
            )
            self._latest_of = asked
            return self._latest

    def facts(self, fragments: tuple[Fragment, ...]) -> dict[str, Any]:
        """What readers of a version have worked out about it; new where it is not the one read last."""
        with self._lock:
            return self._latest_facts if fragments is self._latest else {}

    def _open(self, folder: TableFolder, entry: FragmentEntry, columns: FragmentColumns) -> Fragment:
        # A fragment's columns may have other names in another version of the table.
        key = (entry.id, columns.positions, tuple(columns.schema.names))
        fragment = self._known.get(key)
        if fragment is None:
            fragment = Fragment.open(folder.fragments, entry, columns.written, columns)
            self._known[key] = fragment
        return fragment


class Snapshot(Closeable):
    """A version of a table; vacuum in any process leaves its files alone until `close`. Thread-safe.

    A context manager. Not for use in a forked child, which does not share the parent's hold.
    """

    def __init__(self, folder: TableFolder, pin: Pin, cache: FragmentCache) -> None:
        assert pin.manifest is not None
        assert pin.manifest.schema is not None
        self.name = pin.manifest.table
        self.version = pin.version
        self.created_at = pin.manifest.created_at
        self.schema = pin.manifest.schema
        self.rows = pin.manifest.rows
        self.entries = pin.manifest.fragments
        self.evolution = pin.manifest.evolution
        self.encoding = pin.manifest.encoding
        self._folder = folder
        self._pin = pin
        self._cache = cache
        self._fragments: tuple[Fragment, ...] | None = None
        self._closed = False

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """The version's fragments in row order, opened at first use; old ones may lack columns of `schema`.

        Raises:
            CorruptionError, StorageError: one cannot be opened; names the file.
        """
        if self._closed:
            raise StorageError(
                f"version {self.version} is no longer held: the snapshot is closed", self._folder.path
            )
        if self._fragments is None:
            self._fragments = self._cache.open(self._folder, self.entries, self.schema, self.evolution)
        return self._fragments

    @property
    def facts(self) -> dict[str, Any]:
        """What is worked out about the fragments and lasts as they do, by a name that its maker gives.

        All snapshots of the version that was read last share it.
        """
        return self._cache.facts(self.fragments)

    def close(self) -> None:
        """Let go of the version; closing twice is harmless."""
        self._closed = True
        self._pin.close()
