"""Processes that do pieces of work, and end soon after Ctrl-C with what they have done so far."""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_PATIENCE = 1.0
"""Seconds that a process has to hand back what it has done."""


class _Asked:
    """What a process has been asked by SIGTERM: to stop, now if it is within `stoppable`."""

    stop = False
    busy = False


def check() -> None:
    """Raise `KeyboardInterrupt` where this process was to stop and the call in hand passed over it."""
    if _Asked.stop:
        raise KeyboardInterrupt


@contextmanager
def stoppable() -> Iterator[None]:
    """What is done within ends early where the process is to stop; nothing is raised then."""
    _Asked.busy = True
    try:
        yield
    except BaseException:  # DuckDB has an error of its own for it
        if not _Asked.stop:
            raise
    finally:
        _Asked.busy = False


def _stop(*_: object) -> None:
    _Asked.stop = True
    if _Asked.busy:
        _Asked.busy = False
        raise KeyboardInterrupt


def _prepare(folder: str) -> None:
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal tells all processes; the first one decides
    signal.signal(signal.SIGTERM, _stop)
    tempfile.tempdir = folder


class Workers(Generic[Piece, Result]):
    """`jobs` processes; `stopped` says whether Ctrl-C or SIGTERM has ended them."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self.stopped = False

    def results(self, work: Callable[[Piece], Result], pieces: Iterable[Piece]) -> Iterator[Result]:
        """What `work` gives for each piece, as they come; after Ctrl-C what those begun have so far."""
        signals = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, self._interrupted) for number in signals]
        with tempfile.TemporaryDirectory() as folder:  # a process that is killed leaves its files
            pool = ProcessPoolExecutor(self._jobs, initializer=_prepare, initargs=(folder,))
            try:
                open_ = {pool.submit(work, piece) for piece in pieces}
                while open_ and not self.stopped:
                    done, open_ = wait(open_, 0.1, FIRST_COMPLETED)
                    yield from (future.result() for future in done)
                yield from self._ended(pool, open_)
            finally:
                for number, handler in zip(signals, before, strict=True):
                    signal.signal(number, handler)
                for process in multiprocessing.active_children():
                    process.kill()
                pool.shutdown()

    def _interrupted(self, *_: object) -> None:
        self.stopped = True

    def _ended(self, pool: ProcessPoolExecutor, open_: Iterable[Future[Any]]) -> Iterator[Result]:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        done, _ = wait(open_, _PATIENCE)
        yield from (future.result() for future in done if not future.cancelled() and not future.exception())
