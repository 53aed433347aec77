"""A transaction carried out by one thread of its own, while the caller prepares what comes next.

All changes happen on that thread; others encode rows while it writes those before them. Ctrl-C strikes the
main thread only, so it can never fall between the publication of a version and the note that it was
published, after which its files must not be removed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final

import pyarrow as pa

from bamquery.errors import CancelledError, StorageError
from bamquery.statement_context.cancellation import check_cancelled
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.fragments.encoded_columns import EncodedRows, run_in_turn
from bamquery.storage.fragments.schema_evolution import Evolution
from bamquery.storage.fragments.writer import RowSource
from bamquery.storage.tables.encoding_threads import EncodingThreads
from bamquery.storage.tables.manifest import MAX_FRAGMENT_ROWS, Operation
from bamquery.storage.tables.transaction import Transaction

_PATIENCE: Final = 0.05
"""Seconds from an interrupt until who waits for a fragment notices."""
ABORT_SECONDS: Final = 0.9
"""How long `abort` waits for the thread; a slow device's sync cannot be interrupted."""


class BackgroundTransaction:
    """Writes fragments one at a time: while one is being written, the caller may fill the next.

    Where columns are encoded, one fragment is written, the next one encoded, and the caller fills a heap.

    `finished` is called on the thread once an aborted transaction has removed its files.
    """

    def __init__(
        self,
        transaction: Transaction,
        schema: pa.Schema,
        finished: Callable[[], None] = lambda: None,
        evolution: Evolution | None = None,
    ) -> None:
        """`evolution`: of the version to be published; None for what `Transaction.publish` takes then."""
        self.transaction = transaction
        self.schema = schema
        self._evolution = evolution
        self.entries: list[FragmentEntry] = []
        """Fragments written so far, in order; complete after `settle`."""
        self._finished = finished
        self._cancelled = threading.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="bamquery-writer")
        self._pending: Future[None] | None = None
        """Of rows that were handed over: until they are written, or encoded."""
        self._writing: Future[None] | None = None
        """Of the latest encoded fragment: until it is written."""
        self._threads = 1
        self._encoding: ThreadPoolExecutor | None = None
        self._columns: EncodingThreads | None = None
        self._encoded: EncodedRows | None = None
        self._open = True
        self._process = os.getpid()

    def use_threads(self, threads: int) -> None:
        """Let so many threads encode columns; before the first rows come."""
        self._threads = threads

    def write(self, source: RowSource, encoded_bytes: int = 0) -> None:
        """Hand over rows; waits while those before are still being written, or encoded.

        Plain rows make a fragment. Where columns are encoded more rows are taken into it, until it takes
        `encoded_bytes` of memory, which is about what its file will take; `finish_fragment` writes the last.

        Raises:
            StorageError: these or earlier rows could not be written; or the writer is closed.
            CancelledError: the statement that this thread works for was cancelled.
        """
        self._settle_rows()
        if self.transaction.encoding == "plain":
            self._pending = self._pool.submit(self._write, source)
        else:
            self._pending = self._encode_with(self._encode, source, encoded_bytes)

    def finish_fragment(self) -> None:
        """Let the next rows make a fragment of their own.

        Raises:
            StorageError, CancelledError: as `write`.
        """
        self._settle_rows()
        if self._encoded is not None:
            self._pending = self._encode_with(self._write_encoded)

    def write_now(self, source: RowSource) -> None:
        """Write one fragment and wait for it; unlike after `write`, a failure leaves the writer usable.

        Raises:
            StorageError, CancelledError: as `write`.
        """
        self.settle()
        _await(self._pool.submit(self._write, source))

    def settle(self) -> None:
        """Wait until nothing is being written; rows of a fragment that may grow stay in memory.

        Raises:
            StorageError: it could not be; or the writer is closed.
            CancelledError: as `write`.
        """
        self._settle_rows()
        if self._writing is not None:
            _await(self._writing)

    def _settle_rows(self) -> None:
        """Wait until nothing is being encoded; a fragment may still be being written."""
        self.require_open()
        if self._pending is not None:
            _await(self._pending)
        if self._writing is not None and self._writing.done():
            self._writing.result()

    def _encode_with(self, function: Callable[..., None], *arguments: Any) -> Future[None]:
        """Have the thread call it that leads those that encode; where there is one, it writes, too."""
        if self._threads == 1:
            return self._pool.submit(function, *arguments)
        if self._encoding is None:
            self._encoding = ThreadPoolExecutor(1, thread_name_prefix="bamquery-encoding")
            self._columns = EncodingThreads(self._threads, self.is_cancelled)
        return self._encoding.submit(function, *arguments)

    def _run_all(self, tasks: Sequence[Callable[[], None]]) -> None:
        (run_in_turn if self._columns is None else self._columns.run_all)(tasks)

    def require_open(self) -> None:
        """Refuse to go on after the end, or in a forked child, where the thread does not exist.

        Raises:
            StorageError: it is so.
        """
        if not self._open:
            raise StorageError("this writer is closed", self.transaction.folder.path)
        if os.getpid() != self._process:
            raise StorageError("a writer cannot be used in a forked process", self.transaction.folder.path)

    def is_cancelled(self) -> bool:
        """True once `abort` was called; safe to ask from any thread."""
        return self._cancelled.is_set()

    def publish(self, table: str, operation: Operation, fragments: Sequence[FragmentEntry]) -> int:
        """Commit: the next version consists of `fragments`; returns its number.

        Raises:
            ConflictError, StorageError: as `Transaction.publish`; nothing was committed.
        """
        self.settle()
        # Not cancelled from here on: the caller is to hear whether the version is there.
        version = self._pool.submit(self._publish, table, operation, tuple(fragments)).result()
        self._close()
        return version

    def abort(self) -> None:
        """Stop and remove what was written, unless it is committed already; harmless after either.

        Returns within a second; where a sync takes longer, the thread tidies up when it is over.
        """
        if not self._open or os.getpid() != self._process:
            return
        self._cancelled.set()
        wait([self._pool.submit(self._rollback)], ABORT_SECONDS)
        self._close()

    def _close(self) -> None:
        self._open = False
        self._pool.shutdown(wait=False)
        if self._encoding is not None and self._columns is not None:
            self._encoding.shutdown(wait=False)
            self._columns.close()

    def _write(self, source: RowSource | EncodedRows) -> None:
        self._require_going_on()  # otherwise what it would write is nobody's to remove by now
        self.entries.append(self.transaction.write(self.schema, source, self.is_cancelled))

    def _require_going_on(self) -> None:
        if self.is_cancelled():
            raise CancelledError("the writing of a fragment was cancelled")

    def _encode(self, source: RowSource, encoded_bytes: int) -> None:
        if self._encoded is not None and self._encoded.rows + source.rows > MAX_FRAGMENT_ROWS:
            self._write_encoded()
        encoded = (
            EncodedRows(self.schema, self.transaction.folder.path) if self._encoded is None else self._encoded
        )
        self._encoded = None  # after an error it is of no use
        encoded.add(source, self.is_cancelled, self._run_all)
        self._encoded = encoded
        if encoded.held_bytes >= encoded_bytes:
            self._write_encoded()

    def _write_encoded(self) -> None:
        encoded, self._encoded = self._encoded, None
        if encoded is None or not encoded.rows:
            return
        encoded.close(self._run_all)
        if self._threads == 1:
            self._write(encoded)
            return
        if self._writing is not None:  # no more than one waits for its turn
            while not wait([self._writing], _PATIENCE).done:
                self._require_going_on()
            self._writing.result()
        self._writing = self._pool.submit(self._write, encoded)

    def _publish(self, table: str, operation: Operation, fragments: tuple[FragmentEntry, ...]) -> int:
        if self.is_cancelled():
            raise CancelledError("the change was cancelled")
        version = self.transaction.publish(
            table, operation, self.schema, fragments, evolution=self._evolution
        )
        self.transaction.close()
        return version

    def _rollback(self) -> None:
        self._encoded = None
        self.transaction.rollback()
        self.transaction.close()
        if not self.transaction.published:
            self._finished()


def _await(work: Future[None]) -> None:
    """Wait for what another thread does, which hears by `abort` that the caller's statement was cancelled."""
    while not wait([work], _PATIENCE).done:
        check_cancelled()
    work.result()
