"""Batches of a recipe from several processes.

Threads would wait for each other between any two operations on arrays.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import ExitStack, suppress
from typing import Any, Final

import pyarrow as pa

from bamquery.errors import BamQueryError
from bamquery.queries.generator.recipe import Recipe
from bamquery.queries.generator.worker import Share
from bamquery.queries.trips.arrow import arrow

_MODULE: Final = "bamquery.queries.generator.worker"
_WAIT_S: Final = 10.0
"""How long a process that was killed may take to end."""
_POLL_S: Final = 0.1
_PIPE_BYTES: Final = 1 << 20
"""Linux gives 64 KiB: sixteen times as many switches between the two sides."""


def batches_from_processes(recipe: Recipe, processes: int) -> Generator[pa.RecordBatch, None, None]:
    """All rows in order; at most three batches a process are held. Closing it ends the processes.

    Raises:
        BamQueryError: a process ended before its last batch.
    """
    shares = [Share(recipe, number, processes) for number in range(processes)]
    with ExitStack() as stack:
        workers = [stack.enter_context(_Worker(share)) for share in shares if share.starts()]
        for turn in range(max((len(share.starts()) for share in shares), default=0)):
            for worker, share in zip(workers, shares, strict=False):
                if turn < len(share.starts()):
                    yield worker.next_batch()


class _Worker:
    """One process, and a thread that reads what it writes."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._ended = threading.Event()
        self._ready: queue.Queue[pa.RecordBatch | Exception] = queue.Queue(1)

    def __enter__(self) -> _Worker:
        # The child finds modules where this process does. A session of its own keeps Ctrl-C for the parent.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError), self._process.stdin as pipe:  # it ended already: reading will tell
            pipe.write(pickle.dumps(self._share))
        with suppress(OSError):  # a user may have so much of pipes, and no more
            fcntl.fcntl(self._process.stdout, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._thread = threading.Thread(target=self._read, name="generate", daemon=True)
        self._thread.start()
        return self

    def next_batch(self) -> pa.RecordBatch:
        """The next batch of the share; there is one."""
        found = self._ready.get()
        if isinstance(found, Exception):
            status = self._process.wait(_WAIT_S)
            raise BamQueryError(
                f"generating failed: a process ended before its last row, with status {status} ({found})"
            ) from found
        return found

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._process.kill()
        self._process.wait(_WAIT_S)
        self._thread.join(_WAIT_S)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        pipe: Any = self._process.stdout
        try:
            with arrow.ipc.open_stream(pipe) as stream:
                for _ in self._share.starts():
                    self._put(stream.read_next_batch())
        except (OSError, pa.ArrowInvalid, StopIteration) as error:
            self._put(error)

    def _put(self, found: pa.RecordBatch | Exception) -> None:
        while not self._ended.is_set():
            try:
                self._ready.put(found, timeout=_POLL_S)
            except queue.Full:
                continue
            return
