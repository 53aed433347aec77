"""The scan of a stored table on a GPU: what `bamquery.engine.operators.scan_device` asks of a device."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import Final

from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.scan.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.chunk_run import ChunkRun
from bamquery.engine.cuda.scan.column_reads import ColumnLoads
from bamquery.engine.cuda.scan.loading_chunk import LoadingChunk
from bamquery.engine.cuda.scan.pipeline import overlapped
from bamquery.engine.cuda.scan.resources import resources_of
from bamquery.engine.cuda.scan.scan_state import ScanState
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.device import Device
from bamquery.engine.operators.scan_chunks import Chunk, ChunkLimits, chunks
from bamquery.engine.operators.scan_device import ScanWork

_CHUNK_BYTES: Final = 256 << 20
"""Of the widest column: large enough that launches cost nothing beside it."""
_CHUNK_VECTORS: Final = 1 << 16
_FIRST_VECTORS: Final = 1 << 10
"""Of the first chunk: a million rows, which tell of selectivities."""
_GROWTH: Final = 8
_PIECES: Final = 256
_LIMIT_SHARE: Final = 16
"""A chunk's widest column weighs at most this share of the memory limit."""
_SETTLE_S: Final = 0.8


def scan_on_gpu(
    session: CudaSession, device: Device[CudaFrame], work: ScanWork[CudaFrame]
) -> Generator[CudaFrame, None, None]:
    """One frame a chunk that has rows which pass, in row order. Closing the generator stops the work.

    Raises:
        StorageError: a file is not as it was written; NvmeError: a read of it failed.
        MemoryLimitError: there is too little memory for a chunk.
        CancelledError, ExecutionError, GpuError: as operators do.
    """
    if not work.fragments:
        return
    session.enter()
    stages = _Stages(session, device, work)
    limits = ChunkLimits(
        vectors=_CHUNK_VECTORS,
        stored_bytes=min(_CHUNK_BYTES, (session.limit or _CHUNK_BYTES * _LIMIT_SHARE) // _LIMIT_SHARE),
        first=_FIRST_VECTORS,
        growth=_GROWTH,
        pieces=_PIECES,
        widest=True,
    )
    zone_maps = work.context.settings.zone_maps
    todo = chunks(work.fragments, work.ranges, work.columns, zone_maps, limits)
    # Without a filter the first chunk, a small one, may be all that a LIMIT wants.
    alone = 0 if work.plan.steps else 1
    for frame in overlapped(stages, _checked(work, todo), alone):
        if frame is not None:
            yield frame


def _checked(work: ScanWork[CudaFrame], todo: Iterator[Chunk]) -> Iterator[Chunk]:
    for chunk in todo:
        work.check()
        work.readers.expect(chunk)
        yield chunk


class _Stages:
    """See `bamquery.engine.cuda.scan.pipeline.Stages`."""

    def __init__(self, session: CudaSession, device: Device[CudaFrame], work: ScanWork[CudaFrame]) -> None:
        self._work = work
        self._session = session
        self._state = ScanState(session, resources_of(session), device, work)
        self._open: list[ChunkMemory] = []
        self._discarded: list[LoadingChunk] = []
        self._reading = ExitStack()
        self._reading.enter_context(work.profile.clock.reading())

    def load(self, chunk: Chunk) -> LoadingChunk:
        state, plan = self._state, self._work.plan
        self._session.enter()
        self._work.reads.count_chunk(chunk.pieces)
        first = (
            plan.order.next(list(plan.steps), lambda step: float(len(step.columns))) if plan.steps else None
        )
        if not chunk.rows:
            return LoadingChunk(chunk, None, first)
        state.require_whole([piece.fragment for piece in chunk.pieces if len(piece.vectors)])
        memory = ChunkMemory(state, chunk.pieces)
        self._open.append(memory)
        loading = LoadingChunk(chunk, memory, first, ColumnLoads(memory))
        assert loading.loads is not None
        for position in plan.outputs if first is None else first.columns:
            column = state.columns[position]
            if position not in loading.staged:
                loading.staged[position] = loading.loads.stage(column, state.copy_stream)
        loading.loaded = state.event(state.copy_stream)
        return loading

    def select(self, loading: LoadingChunk) -> Callable[[], CudaFrame | None]:
        self._session.enter()
        memory = loading.memory
        if memory is None:
            # Zone maps left nothing, yet the first step's columns had to be looked at.
            columns = self._work.plan.outputs if loading.first is None else loading.first.columns
            for column in columns:
                for piece in loading.chunk.pieces:
                    self._work.reads.count_whole_piece(piece, self._state.columns[column].name)
            self._work.readers.release(loading.chunk)
            return lambda: None
        cuda = self._session.gpu.cuda
        cuda("wait for an event", "cuStreamWaitEvent", self._state.stream, loading.loaded, 0)
        self._forget(loading)
        run = ChunkRun(self._state, loading)
        run.run()
        event = run.copy_back()

        def answer() -> CudaFrame | None:
            self._session.enter()
            try:
                self._state.wait(event)
            finally:
                self._state.forget(event)
            frame = run.finish()
            self._open.remove(memory)
            memory.close()
            self._work.readers.release(loading.chunk)
            return frame

        return answer

    def discard(self, loading: LoadingChunk) -> None:
        self._forget(loading)
        self._discarded.append(loading)

    def close(self) -> None:
        """Wait until the GPU has done with the scan's memory; what it does not end is kept."""
        self._session.enter()
        settled = self._settled()
        if settled:
            self._count_discarded()
        for memory in self._open:
            if settled:
                memory.close()
            else:
                self._session.gpu.abandon(memory)
        self._open.clear()
        self._reading.close()
        if settled:
            self._state.close()
        else:
            self._session.gpu.abandon(self._state)

    def _count_discarded(self) -> None:
        """What was read for nothing was read all the same."""
        for loading in self._discarded:
            if loading.loads is None or loading.memory is None:
                continue
            for read in loading.loads.reads:
                if not read.tallies:  # what kernels counted was not brought back
                    with self._work.profile.lock:
                        self._work.profile.columns[read.name].counters += read.counters

    def _settled(self) -> bool:
        if not self._open:
            return True
        api = self._session.gpu.cuda.api
        events = [self._state.event(stream) for stream in (self._state.copy_stream, self._state.stream)]
        until = time.monotonic() + _SETTLE_S
        for event in events:
            (status,) = api.cuEventQuery(event)
            while status == api.CUresult.CUDA_ERROR_NOT_READY and time.monotonic() < until:
                time.sleep(1e-3)
                (status,) = api.cuEventQuery(event)
            self._state.forget(event)
            if int(status):
                return False
        self._state.reap()
        return True

    def _forget(self, loading: LoadingChunk) -> None:
        if loading.loaded is not None:
            self._state.forget(loading.loaded)
            loading.loaded = None
