"""The scan of a stored table on a GPU: what `bamquery.engine.operators.scan.device_scan` asks of a device."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Final

from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.scan.chunk.chunk_memory import ChunkMemory
from bamquery.engine.cuda.scan.chunk.chunk_sizes import ChunkSizes, ListedChunk, cut_chunks
from bamquery.engine.cuda.scan.chunk.full_chunk import full_chunk
from bamquery.engine.cuda.scan.chunk.vector_list import VectorList, listed_vectors
from bamquery.engine.cuda.scan.chunk_run import ChunkRun
from bamquery.engine.cuda.scan.kernel_tables.predicates import FusedPredicate
from bamquery.engine.cuda.scan.loading_chunk import LoadingChunk
from bamquery.engine.cuda.scan.pipeline import overlap_chunks
from bamquery.engine.cuda.scan.reads.column_reads import ColumnLoads
from bamquery.engine.cuda.scan.reads.path_measurement import measure_paths
from bamquery.engine.cuda.scan.resources.scan_resources import resources_of
from bamquery.engine.cuda.scan.scan_state import ScanState, Selects
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.device import Device
from bamquery.engine.operators.scan.device_scan import ScanWork
from bamquery.engine.operators.scan.filter_order import FilterStep
from bamquery.storage.statistics.predicate import RangePredicate

_CHUNK_BYTES: Final = 256 << 20
"""Of the widest column: large enough that launches cost nothing beside it."""
_THIN_CHUNK_BYTES: Final = 512 << 20
"""The same where zone maps leave only some parts of each vector: what a chunk costs the host is more there
than what it costs the bus. Measured: 10.7 ms for Q1 where 256 MiB take 12.3."""
_THIN_SHARE: Final = 8
"""Of such chunks the first one has so many times as many vectors."""
_CHUNK_VECTORS: Final = 1 << 18
"""At most. Packed columns of a few bits a row come to so many before they weigh anything, and a chunk costs
the host some milliseconds, however little is in it."""
_FIRST_VECTORS: Final = 1 << 12
"""Of the first chunk: enough to tell of selectivities, and to be on its way until the next one is planned."""
_FIRST_ROWS: Final = 1 << 10
"""Of the first chunk where nothing is filtered, in vectors: it may be all that a LIMIT wants."""
_FIRST_BYTES: Final = 256 << 20
"""Of pages that are on their way before it is known which of them are needed."""
_FIRST_FRAGMENTS: Final = 64
"""Whose statistics are on their way before the first of them are looked through."""
_PAGES_AHEAD: Final = 3
"""Chunks whose pages are on their way into memory before the first of them is loaded."""
_SETTLE_S: Final = 0.8


def scan_on_gpu(
    session: CudaSession,
    device: Device[CudaFrame],
    work: ScanWork[CudaFrame],
    selects: Selects = lambda condition, has_dictionary: False,
) -> Generator[CudaFrame, None, None]:
    """One frame a chunk that has rows which pass, in row order. Closing the generator stops the work.

    `selects`: which conditions the device computes together.

    Raises:
        StorageError: a file is not as it was written; NvmeError: a read of it failed.
        MemoryLimitError: there is too little memory for a chunk.
        CancelledError, ExecutionError, GpuError: as operators do.
    """
    if not work.fragments:
        return
    session.enter()
    stages = _Stages(session, device, work, selects)
    # Without a filter the first chunk, a small one, may be all that a LIMIT wants.
    alone = 0 if work.plan.steps else 1
    for frame in overlap_chunks(stages, stages.chunks(), alone):
        if frame is not None:
            yield frame


class _Stages:
    """See `bamquery.engine.cuda.scan.pipeline.Stages`."""

    def __init__(
        self,
        session: CudaSession,
        device: Device[CudaFrame],
        work: ScanWork[CudaFrame],
        selects: Selects,
    ) -> None:
        self._work = work
        self._session = session
        resources = resources_of(session)
        resources.close_parked()
        self._state = ScanState(session, resources, device, work, selects)
        self._open: list[ChunkMemory] = []
        self._discarded: list[LoadingChunk] = []
        self._lists: weakref.WeakSet[VectorList] = weakref.WeakSet()
        """Those that chunks still have."""
        self._coming: list[ListedChunk] = []
        """Chunks of which no row has passed yet."""
        self._state.on_streamed_cold = self._ask_everywhere
        self._ends: list[Any] = []
        """Events behind all that the scan's streams were given."""
        self._reading = ExitStack()
        self._reading.enter_context(work.profile.clock.measure_read())

    def chunks(self) -> Iterator[ListedChunk]:
        """What is to be read, as zone maps tell; pages that are not in memory are on their way to it."""
        self._ask_first()
        waiting: deque[ListedChunk] = deque()
        for listed in self._cut():
            waiting.append(listed)
            self._coming.append(listed)
            # Of all that wait: what the chunks before them were found to need, these will, too.
            if max(map(self._ask_ahead, waiting)) and len(waiting) < _PAGES_AHEAD:
                continue
            yield waiting.popleft()
        while waiting:
            yield waiting.popleft()

    def _ask_first(self) -> None:
        """Have statistics read, and pages that filters look at first while these are still looked through.

        Zone maps may leave whole fragments out; without them all are read.
        """
        state, plan, size = self._state, self._work.plan, 0
        # Bounds of parts are of use where conditions are, their checksums where parts are all that is read.
        pruned = {found.column for found in self._ranges}
        if pruned and plan.steps:
            pruned |= {state.columns[column].name for column in self._first_columns()}
        for fragment in self._work.fragments[:_FIRST_FRAGMENTS]:
            fragment.ask_ahead(self._work.columns)
            if pruned:
                fragment.ask_ahead(pruned, parts=True)
        if state.direct or not plan.steps or self._ranges:
            return
        for column in self._first_columns():
            for fragment in self._work.fragments:
                layout = fragment.layout.columns[fragment.column_index(state.columns[column].name)]
                if state.is_pinned(fragment, layout.values):
                    return  # and so are the others, or some are waited for
                size += layout.values.length
                if size > _FIRST_BYTES:
                    return
                state.read_ahead.ask([(fragment, layout.values)])

    def _is_warm(self) -> bool:
        """Whether pages that chunks look at first are pinned; of the first fragment, as a sample."""
        fragment = self._work.fragments[0]
        for column in self._first_columns():
            layout = fragment.layout.columns[fragment.column_index(self._state.columns[column].name)]
            if not self._state.is_pinned(fragment, layout.values):
                return False
        return not self._state.direct

    def _ask_ahead(self, listed: ListedChunk) -> bool:
        """Have pages read that the chunk will look at first, and such as others of the scan had to stream.

        Returns:
            Whether some are not pinned, and so may not be in memory.
        """
        names = {self._state.columns[column].name for column in self._first_columns()}
        return self._ask(listed, sorted(names | self._state.streamed_cold))

    def _ask_everywhere(self, name: str) -> None:
        """Have pages of one more column read for all chunks that are on their way."""
        for listed in self._coming:
            self._ask(listed, [name])

    def _ask(self, listed: ListedChunk, names: Sequence[str]) -> bool:
        state, resident = self._state, listed.listed.resident
        if state.direct or not listed.chunk.rows:
            return False
        found = False
        for name in names:
            for buffer in ("values", "validity"):
                if state.pinned_run(resident, name, buffer) is None:
                    found = True
                    stored = resident.stored(name, buffer)
                    pieces = zip(listed.fragments, listed.chunk.pieces, strict=True)
                    state.read_ahead.ask(stored[n] for n, piece in pieces if len(piece.vectors))
        return found

    def _first_columns(self) -> Sequence[int]:
        """Those that chunks look at first, by position."""
        first = self._first_step()
        return self._work.plan.outputs if first is None else first.columns

    def _first_step(self) -> FilterStep | None:
        """That chunks begin with: of those that are worth it."""
        plan = self._work.plan
        steps = [step for step in plan.steps if plan.order.is_worth(step)]
        return plan.order.choose_next(steps, lambda step: float(len(step.columns))) if steps else None

    @property
    def _ranges(self) -> Sequence[RangePredicate]:
        """Bounds that zone maps are held against."""
        return self._work.ranges if self._work.context.settings.zone_maps else ()

    def _cut(self) -> Iterator[ListedChunk]:
        work, state = self._work, self._state
        first = _FIRST_VECTORS if work.plan.steps else _FIRST_ROWS
        whole, thin = ChunkSizes(first, first), ChunkSizes(_THIN_SHARE * first, _THIN_SHARE * first)
        for resident in state.resources.runs.divide(self._session, work.fragments, work.columns):
            listed = listed_vectors(state, resident, self._ranges)
            self._lists.add(listed)
            sizes, most = (whole, _CHUNK_BYTES) if listed.parts is None else (thin, _THIN_CHUNK_BYTES)
            rows = resident.row_bytes(work.columns)
            filtered = bool(work.plan.steps)
            sizes.full = full_chunk(rows, self._session.limit, most, _CHUNK_VECTORS, filtered=filtered)
            if work.is_taken_whole and self._is_warm():
                sizes.target = sizes.full
                sizes.together = listed.count <= sizes.full
            for chunk in cut_chunks(listed, sizes):
                work.check()
                work.readers.expect(chunk.chunk)
                yield chunk

    def load(self, listed: ListedChunk) -> LoadingChunk:
        state, plan, chunk = self._state, self._work.plan, listed.chunk
        self._session.enter()
        self._work.reads.count_chunk(chunk.pieces)
        first = self._first_step()
        if not chunk.rows:
            return LoadingChunk(chunk, None, first)
        state.require_whole([piece.fragment for piece in chunk.pieces if len(piece.vectors)])
        memory = ChunkMemory(state, listed)
        self._open.append(memory)
        if state.wants_rates and first is not None:
            measured = measure_paths(memory, list(state.columns.values()), state.rates)
            if measured is not None:
                state.take_rates(measured)
        loads = ColumnLoads(memory)
        loading = LoadingChunk(chunk, memory, first, loads)
        fused = None if first is None else state.fused[first.number]
        in_parts = isinstance(fused, FusedPredicate)
        for position in plan.outputs if first is None else first.columns:
            column = state.columns[position]
            if position not in loading.staged:
                loading.staged[position] = loads.stage(column, state.copy_stream, in_parts=in_parts)
        self._session.follow(state.look_stream, state.copy_stream)
        for position, staged in loading.staged.items():
            if staged.offsets is None:  # of strings it needs more than has come
                loads.check(state.columns[position].name, staged, state.look_stream)
        if isinstance(fused, FusedPredicate):
            assert first is not None
            loading.passed = loads.start_filter(fused, loading.staged[first.columns[0]], state.look_stream)
            memory.board.copy_back(state.look_stream)
        loading.looked = state.event(state.look_stream)
        return loading

    def select(self, loading: LoadingChunk) -> Callable[[], CudaFrame | None]:
        self._session.enter()
        self._coming = [listed for listed in self._coming if listed.chunk is not loading.chunk]
        memory = loading.memory
        if memory is None:
            # Zone maps left nothing, yet the first step's columns had to be looked at.
            columns = self._work.plan.outputs if loading.first is None else loading.first.columns
            for column in columns:
                self._work.reads.count_whole_pieces(loading.chunk.pieces, self._state.columns[column].name)
            self._work.readers.release(loading.chunk)
            return lambda: None
        cuda = self._session.gpu.cuda
        cuda("wait for an event", "cuStreamWaitEvent", self._state.stream, loading.looked, 0)
        run = ChunkRun(self._state, loading)
        run.run()
        self._forget(loading)
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
        """Wait until the GPU has done with the scan's memory; what it does not end is kept until it has."""
        self._session.enter()
        self._reading.close()
        self._stop()
        self._ends = self._state.events() if self._open else []
        if not self.close_within(_SETTLE_S):
            self._state.resources.park(self)

    def close_within(self, seconds: float) -> bool:
        """Give all back, if the GPU has done with it by then."""
        if not self._state.settle(self._ends, seconds):
            return False
        self._state.reap()
        self._count_discarded()
        for memory in self._open:
            memory.close()
        self._open.clear()
        for listed in list(self._lists):
            listed.close()
        self._state.close()
        return True

    def _stop(self) -> None:
        """Let kernels end early whose rows nobody took."""
        if self._open:
            for memory in self._open:
                memory.stop(self._state.stop_stream)

    def _count_discarded(self) -> None:
        """What was read for nothing was read all the same."""
        for loading in self._discarded:
            if loading.loads is None or loading.memory is None:
                continue
            for read in loading.loads.reads:
                if not read.tallies:  # what kernels counted was not brought back
                    with self._work.profile.lock:
                        self._work.profile.columns[read.name].counters += read.counters

    def _forget(self, loading: LoadingChunk) -> None:
        if loading.looked is not None:
            self._state.forget(loading.looked)
            loading.looked = None
