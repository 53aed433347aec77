"""Rows on their way into a table: collected into fragments, visible all at once or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import pyarrow as pa

from bamquery.errors import ConstraintError, CorruptionError, StorageError
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.rows import ConcatenatedRows, table_rows
from bamquery.storage.fragments.schema_evolution import ColumnRule, Evolution
from bamquery.storage.fragments.writer import BatchRows, PassingRows, RowSource
from bamquery.storage.tables.background import BackgroundTransaction
from bamquery.storage.tables.manifest import MAX_FRAGMENT_ROWS, Operation
from bamquery.storage.tables.transaction import Transaction

FRAGMENT_BYTES: Final = 192 << 20
"""Plain bytes of the rows that make a fragment; a writer holds at most two such heaps."""

_ENCODED_HEAP: Final = 2
_ENCODED: Final = 3
"""Where columns are encoded, heaps take this part, and a fragment is of as many as take the other when they
are encoded. So a writer holds less, and files are large where columns are small."""

_HEAPS: Final = 8
"""Heaps that would fill a limit: the rows' source takes some of it, too."""

MERGED_APPENDS: Final = 63
"""An append that finds this many small fragments at the table's end merges them with its own rows."""

SMALL_ROWS: Final = 1 << 16
SMALL_BYTES: Final = 4 << 20
"""A fragment with fewer rows and bytes is small, so merging never rewrites much."""


class TableWriter:
    """Writes rows and commits them as one new version.

    A context manager: leaving it without `commit`, or by an exception, removes what was written. For one
    thread at a time.
    """

    def __init__(
        self,
        transaction: Transaction,
        table: str,
        operation: Operation,
        schema: pa.Schema,
        *,
        aborted: Callable[[], None] = lambda: None,
        rules: Sequence[ColumnRule] = (),
    ) -> None:
        """Made by `Database.create_table` and `Table.append`; `aborted` tidies up after an abort.

        `rules` are those of a new table; one that is appended to has its own.
        """
        self.table = table
        self.schema = schema
        self.rows = 0
        """Rows written so far."""
        self._operation: Operation = operation
        base = transaction.base.manifest
        follows = operation in ("append", "optimize") and base is not None
        self._evolution = base.evolution if follows and base is not None else Evolution(tuple(rules))
        self._required = [i for i in range(len(schema)) if self._evolution.rule(i).not_null]
        self._background = BackgroundTransaction(transaction, schema, aborted, self._evolution)
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0
        self._handed_over = False
        self._limit: int | None = None

    def limit_memory(self, limit: int) -> None:
        """Let rows that wait take a quarter of so many bytes at most; fragments are as small as that."""
        self._limit = limit

    def use_threads(self, threads: int) -> None:
        """Let so many threads encode columns; before the first rows come."""
        self._background.use_threads(threads)

    @property
    def _heap_bytes(self) -> int:
        """Of rows that are handed over together."""
        part = 1 if self._background.transaction.encoding == "plain" else _ENCODED_HEAP
        return self._fragment_bytes // part

    @property
    def _fragment_bytes(self) -> int:
        return FRAGMENT_BYTES if self._limit is None else min(FRAGMENT_BYTES, self._limit // _HEAPS)

    @property
    def rules(self) -> tuple[ColumnRule, ...]:
        """What the table says of its columns; none where it says nothing of any."""
        return self._evolution.rules

    @property
    def fragments(self) -> Sequence[FragmentEntry]:
        """Those written so far; complete after `commit`."""
        return self._background.entries

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; they are written in the background, some hundred MB at a time.

        Raises:
            StorageError: the schema differs, an earlier fragment could not be written, or this is closed.
            ConstraintError: a null in a column that takes none.
        """
        if not batch.schema.equals(self.schema):
            raise StorageError(
                f'rows for table "{self.table}" have columns ({_brief(batch.schema)}), '
                f"not ({_brief(self.schema)})"
            )
        self._background.require_open()
        for column in self._required:
            if batch.column(column).null_count:
                name = self.schema.field(column).name
                raise ConstraintError(
                    f'column "{name}" of table "{self.table}" is NOT NULL, and a value is null'
                )
        self.rows += batch.num_rows
        while batch.num_rows:
            size = _plain_bytes(batch)
            taken = min(batch.num_rows, self._room(batch.num_rows, size))
            piece, batch = batch, batch.slice(taken)
            if batch.num_rows:
                piece = piece.slice(0, taken)
                size = _plain_bytes(piece)
            self._batches.append(piece)
            self._rows += taken
            self._bytes += size
            if batch.num_rows or self._rows >= MAX_FRAGMENT_ROWS or self._bytes >= self._heap_bytes:
                self._flush()

    def commit(self) -> int:
        """Make the rows visible, as the version that is returned; the writer is closed in any case.

        An append of no rows changes nothing and returns the version it began with.

        Raises:
            ConflictError: another writer has committed since this one began; nothing was changed.
            StorageError: the file system failed; nothing was changed, unless the message says so.
        """
        try:
            kept: tuple[FragmentEntry, ...] = ()
            base = self._background.transaction.base
            if self._operation == "append" and base.manifest is not None:
                if self.rows == 0:
                    self.abort()
                    return base.version
                kept = self._merge_tail(base.manifest.fragments)
            self._flush()
            self._background.finish_fragment()
            self._background.settle()
            return self._background.publish(self.table, self._operation, [*kept, *self._background.entries])
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Remove what was written and close; harmless after a commit."""
        self._batches = []
        self._background.abort()

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def _room(self, rows: int, size: int) -> int:
        """How many of so many rows, which take `size` bytes, the heap still takes; at least one.

        Where it must cut, it cuts at a vector's end, so that no fragment but the last has a short vector.
        """
        rows_by_bytes = (self._heap_bytes - self._bytes) * rows // max(size, 1)
        room = min(rows_by_bytes, MAX_FRAGMENT_ROWS - self._rows)
        if room >= rows:
            return rows
        whole = (self._rows + room) // VECTOR_ROWS * VECTOR_ROWS - self._rows
        return whole if whole > 0 else VECTOR_ROWS - self._rows % VECTOR_ROWS

    def _merge_tail(self, fragments: tuple[FragmentEntry, ...]) -> tuple[FragmentEntry, ...]:
        """Where many small appends have come together, write their rows and these ones as one fragment.

        Returns the fragments that stay.
        """
        self._background.settle()
        tail = list(takewhile(_is_small, reversed(fragments)))[::-1]
        if len(tail) < MERGED_APPENDS or self._handed_over or self._bytes >= SMALL_BYTES:
            return fragments
        try:
            folder = self._background.transaction.folder.fragments
            old = [self._stored_rows(folder, entry) for entry in tail]
            self._background.write_now(ConcatenatedRows([*old, BatchRows(self._batches)]))
        except CorruptionError:
            # Rows can be added beside damaged ones; queries and `check` say what is damaged.
            return fragments
        self._batches = []
        return fragments[: -len(tail)]

    def _stored_rows(self, folder: Path, entry: FragmentEntry) -> RowSource:
        columns = self._evolution.columns(self.schema, entry)
        fragment = Fragment.open(folder, entry, columns.written, columns)
        return table_rows(fragment, self.schema, self._evolution)

    def _flush(self) -> None:
        if self._batches:
            rows = PassingRows(self._batches)
            self._batches = []
            self._rows = self._bytes = 0
            self._handed_over = True
            self._background.write(rows, self._fragment_bytes // _ENCODED)


def _is_small(entry: FragmentEntry) -> bool:
    return entry.rows < SMALL_ROWS and entry.data_bytes < SMALL_BYTES


def _plain_bytes(batch: pa.RecordBatch) -> int:
    """Bytes of the rows themselves; dictionaries, which batches share, are left out."""
    return sum(_column_bytes(column) for column in batch.columns)


def _column_bytes(column: pa.Array[Any]) -> int:
    return column.indices.nbytes if isinstance(column, pa.DictionaryArray) else column.nbytes


def _brief(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
