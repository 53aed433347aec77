"""Batches made on a thread of their own while the caller is busy with the ones before."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Final, Self

import pyarrow as pa

READ_AHEAD_BYTES: Final = 64 << 20
"""About what is held ready; with one batch in the making and one in use this is all the reading takes."""

STOP_SECONDS: Final = 0.5
"""How long leaving waits for a reader that is in the middle of a batch; it stops by itself after it."""


class ReadAhead:
    """An iterator over the batches of another, which a thread runs ahead of it.

    A context manager: leaving it stops the thread. Errors of the other iterator are raised in their place.
    Waiting for a batch can be interrupted by Ctrl-C.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch], max_bytes: int = READ_AHEAD_BYTES) -> None:
        self._batches = batches
        self._max_bytes = max_bytes
        self._ready: deque[tuple[pa.RecordBatch, int]] = deque()
        self._bytes = 0
        self._error: BaseException | None = None
        self._ended = False
        self._stopped = False
        self._changed = threading.Condition()
        # A daemon: a source may block for ever (a socket, a generator), and the process must still end.
        self._thread = threading.Thread(target=self._run, name="bamquery-read-ahead", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._stopped = True
            self._ready.clear()
            self._changed.notify_all()
        self._thread.join(STOP_SECONDS)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        with self._changed:
            while not self._ready and not self._ended:
                self._changed.wait()
            if not self._ready:
                if self._error is not None:
                    raise self._error
                raise StopIteration
            batch, size = self._ready.popleft()
            self._bytes -= size
            self._changed.notify_all()
            return batch

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            for batch in self._batches:
                if not self._put(batch):
                    break
                del batch  # what the reader holds while it makes the next one must not count twice
        except BaseException as raised:  # whatever it is, it belongs to the caller's thread
            error = raised
        finally:
            close = getattr(self._batches, "close", None)
            if close is not None:
                close()
            with self._changed:
                self._error = error
                self._ended = True
                self._changed.notify_all()

    def _put(self, batch: pa.RecordBatch) -> bool:
        size = batch.nbytes
        with self._changed:
            while self._ready and self._bytes + size > self._max_bytes and not self._stopped:
                self._changed.wait()
            if self._stopped:
                return False
            self._ready.append((batch, size))
            self._bytes += size
            self._changed.notify_all()
            return True
