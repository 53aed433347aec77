"""What all queries on one GPU share: its context, its memory and the stream on which libcudf works."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from typing import Any, Final

import rmm
from rmm.pylibrmm.stream import Stream

from bamquery.driver.gpu import wait as gpu_wait
from bamquery.driver.gpu.device import Gpu
from bamquery.engine.cuda.cache.column_cache import ColumnCache
from bamquery.engine.cuda.cache.query_columns import ColumnsOfQueries
from bamquery.engine.cuda.device_memory import device_pool, memory_limit_error
from bamquery.engine.cuda.launcher import Launcher
from bamquery.engine.cuda.pipeline.program_kernels import ProgramKernels
from bamquery.engine.cuda.read_back import ReadBack
from bamquery.errors import GpuError
from bamquery.statement_context.cancellation import check_cancelled

_STUCK_DEADLINE_S: Final = 1.0
"""Where a wait before this one was given up: the GPU may still be as it was then."""

_CACHE_PART: Final = 3

_sessions: dict[tuple[int, int | None], CudaSession] = {}
_gpus: dict[int, tuple[Gpu, threading.RLock]] = {}
_lock = threading.RLock()


class CudaSession:
    """One GPU under one memory limit, for all queries of this process that want that; thread-safe.

    Attributes:
        gpu: the driver's view of it; all sessions of an ordinal have the same, as they have `lock`.
        ordinal: its number, from 0 on.
        limit: bytes that `memory` gives out at most; None: all there is.
        memory: gives out stream-ordered memory from the GPU's pool. Pass it as `mr` wherever a libcudf
            function takes one, so that the limit holds.
        stream: where libcudf works; pass it as `stream`. Work on it follows in order, whichever thread asks.
        driver_stream: the same stream as the driver's interface has it (`CUstream`), for launches and events.
        column_cache: columns of stored tables that stay in `memory`.
        lock: for what only one thread may do at a time with `gpu`.
    """

    def __init__(self, ordinal: int, limit: int | None) -> None:
        """See `open_session`."""
        with _lock:
            if ordinal not in _gpus:
                _gpus[ordinal] = (Gpu(ordinal), threading.RLock())
            gpu, lock = _gpus[ordinal]
        self.gpu: Final = gpu
        self.lock: Final = lock
        self.ordinal: Final = ordinal
        self.limit: Final = limit
        self.enter()
        pool = device_pool(ordinal)
        self.column_cache: Final = ColumnCache()
        self.query_columns: Final = ColumnsOfQueries()
        limited = pool if limit is None else rmm.mr.LimitingResourceAdaptor(pool, limit)
        # Before a query fails for want of memory, the cache makes room.
        self.memory: Final = rmm.mr.FailureCallbackResourceAdaptor(limited, self._make_room)
        # A blocking stream, unlike the driver's: cuDF, CuPy and torch use the default stream, so what they
        # still do with a column that came from here ends before its memory is used again.
        self.stream: Final = Stream()
        self.driver_stream: Final = self.gpu.cuda.api.CUstream(self.stream.__cuda_stream__()[1])
        self._wrapped: dict[int, Stream] = {}
        self._held: list[object] = []
        self._held_lock = threading.Lock()
        self._stuck = False

    @property
    def name(self) -> str:
        """As settings spell the device."""
        return f"cuda:{self.ordinal}"

    @functools.cached_property
    def launcher(self) -> Launcher:
        """Starts kernels on this GPU."""
        return Launcher(self.gpu, self.lock)

    @functools.cached_property
    def program_kernels(self) -> ProgramKernels:
        """Kernels of programs, for launches on `stream`."""
        return ProgramKernels(self.gpu, self.lock, self.driver_stream)

    @functools.cached_property
    def read_back(self) -> ReadBack:
        """Words that kernels tell the host."""
        return ReadBack(self)

    def cache_limit(self, asked: int | None) -> int:
        """Bytes that `column_cache` may hold, the default filled in: a third of the memory there may be."""
        if asked is not None:
            return asked if self.limit is None else min(asked, self.limit)
        return (self._total if self.limit is None else min(self.limit, self._total)) // _CACHE_PART

    @functools.cached_property
    def _total(self) -> int:
        """Bytes of the GPU's memory."""
        self.enter()
        _, total = self.gpu.cuda("ask for the GPU's memory", "cuMemGetInfo")
        return int(total)

    def _make_room(self, nbytes: int) -> bool:
        """Whether memory that could not be had may be there now: other limits have caches of their own."""
        same_gpu = [one for (ordinal, _), one in list(_sessions.items()) if ordinal == self.ordinal]
        everyone = {self, *same_gpu}
        return sum(one.column_cache.clear() + one.query_columns.clear() for one in everyone) > 0

    def enter(self) -> None:
        """Make this thread's CUDA calls go to this GPU."""
        self.gpu.enter()

    def allocate(self, nbytes: int, what: str, driver_stream: Any = None) -> rmm.DeviceBuffer:
        """Memory with anything in it, ordered on a stream; on `stream` if None.

        Other streams wait for that one before they write to it (`follow`), and it waits for them before the
        buffer is let go of.

        Raises:
            MemoryLimitError: there is not so much left; names `what` and the setting to change.
        """
        self.enter()
        return self.allocate_entered(nbytes, what, driver_stream)

    def allocate_entered(self, nbytes: int, what: str, driver_stream: Any = None) -> rmm.DeviceBuffer:
        """As `allocate`, where the thread has called `enter` and nobody else came in between."""
        stream = self.stream if driver_stream is None else self.wrap(driver_stream)
        try:
            return rmm.DeviceBuffer(size=nbytes, stream=stream, mr=self.memory)
        except MemoryError as error:
            raise memory_limit_error(what, self.limit, nbytes, error) from None

    def wrap(self, driver_stream: Any) -> Stream:
        """A stream of `gpu` as libcudf's functions take it."""
        handle = int(driver_stream)
        found = self._wrapped.get(handle)
        if found is None:
            found = self._wrapped[handle] = Stream(_Handle(handle))
        return found

    def follow(self, waiting: Any, first: Any) -> None:
        """Let one driver stream wait, on the GPU, for what another has been given so far."""
        self.enter()
        cuda = self.gpu.cuda
        event = self.gpu.events.record(first)
        try:
            cuda("wait for an event", "cuStreamWaitEvent", waiting, event, 0)
        finally:
            self.gpu.events.give_back(event)

    def hold(self, thing: object) -> None:
        """Keep what copies on `stream` still read, until somebody has waited for them by `synchronize`."""
        with self._held_lock:
            self._held.append(thing)

    def synchronize(self) -> None:
        """Wait until `stream` has done all it was given. Cancellation and Ctrl-C work.

        Raises:
            CancelledError: the thread's query was cancelled.
            GpuError: something on the stream failed, or does not end.
        """
        with self._held_lock:
            held, self._held = self._held, []
        try:
            self.wait(
                lambda deadline: self.gpu.wait_for_stream(
                    self.driver_stream, self.name, check=check_cancelled, deadline_s=deadline
                )
            )
        except BaseException:  # copies may go on
            with self._held_lock:
                self._held = held + self._held
            raise

    def wait(self, waiting: Callable[[float], None]) -> None:
        """Call `waiting` with the seconds that it may take; few, once a wait was given up, until one ends.

        Raises:
            GpuError: `waiting` did.
        """
        self.enter()
        try:
            waiting(_STUCK_DEADLINE_S if self._stuck else gpu_wait.STREAM_DEADLINE_S)
        except GpuError:
            self._stuck = True
            raise
        self._stuck = False


class _Handle:
    """A stream that somebody else owns, as CUDA's Python libraries pass it to each other."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self._handle)


def open_session(ordinal: int, limit: int | None = None) -> CudaSession:
    """The session of a GPU and a limit in bytes; made once, and kept until the process ends.

    Raises:
        GpuError: there is no such GPU, or something on the way to it is missing.
    """
    with _lock:
        session = _sessions.get((ordinal, limit))
        if session is None:
            session = _sessions[ordinal, limit] = CudaSession(ordinal, limit)
            _never_let_go(session)
        return session


def _never_let_go(session: CudaSession) -> None:
    """One reference more than there are: no collection, the interpreter's last ones neither, takes it apart.

    A buffer gives its memory back to its pool on its stream. Where the interpreter ends while buffers and
    session are garbage together (a script's own functions hold its variables in a cycle), Python lets go of
    them in any order, and CUDA crashes on a stream that is gone.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(session))
