"""Reads a table's columns whole: the copy engine brings pages, kernels check them and make values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import rmm
from numpy.typing import NDArray

from bamquery.engine.cuda.cache.late_columns import Held
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.launcher import WARPS
from bamquery.engine.cuda.scan.columns import libcudf_rows
from bamquery.engine.cuda.scan.columns.device_columns import DeviceColumn
from bamquery.engine.cuda.scan.columns.dictionaries import dictionary_size
from bamquery.engine.cuda.scan.kernel_tables.packed_requests import PACKED, SLACK, run_requests
from bamquery.engine.cuda.scan.kernel_tables.requests import REQUEST, count_requests
from bamquery.engine.cuda.scan.reads.checksums import CHECK_BLOCKS, crc_shifts
from bamquery.engine.cuda.scan.reads.load_vectors import COPY_ENGINE, start_copies
from bamquery.engine.cuda.scan.reads.packed_payloads import FILES
from bamquery.engine.cuda.scan.reads.packed_rows import value_define
from bamquery.engine.cuda.scan.resources.counter_board import CounterBoard, Slot, Uploads
from bamquery.engine.cuda.scan.resources.pinned_files import FileLook, PinnedRun
from bamquery.engine.cuda.scan.resources.scan_resources import ScanResources
from bamquery.engine.cuda.scan.scan_clock import ScanClock, StreamTime
from bamquery.engine.cuda.scan.scan_state import counted_block_bytes
from bamquery.engine.cuda.scan.whole.plan import WholeColumn, WholePlan
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.operators.scan.device_scan import ScanWork
from bamquery.errors import CorruptionError
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.readers.block_reader import ReadCounters

_SETTLE_S: Final = 0.8


@dataclass
class _Reading:
    """A column on its way.

    Attributes:
        values: what is made of it; of a dictionary's codes, their places.
        validity: a bit a row; None: no row is null.
        bad: the word with how many vectors there are from the first wrong one on.
        unknown: the same of codes that no dictionary has.
    """

    column: WholeColumn
    counters: ReadCounters
    clock: StreamTime
    values: rmm.DeviceBuffer
    bad: Slot | None
    validity: rmm.DeviceBuffer | None = None
    nulls: Slot | None = None
    unknown: Slot | None = None


class WholeLoad:
    """One table's columns; one thread uses it, as a context manager."""

    def __init__(
        self, session: CudaSession, resources: ScanResources, work: ScanWork[CudaFrame], plan: WholePlan
    ) -> None:
        self._session = session
        self._resources = resources
        self._work = work
        self._plan = plan
        self._block_bytes = counted_block_bytes(work.context.settings)
        self._rows = sum(fragment.rows for fragment in work.fragments)
        self._clock = ScanClock(session, work.check)
        self._runs: list[PinnedRun] = []
        self._board: CounterBoard | None = None
        self._uploads = Uploads(session, resources.blocks, resources.launcher)
        self._copies: Any = None
        self._memory: list[rmm.DeviceBuffer] = []
        """What copies and kernels write to that may not have ended."""
        self._clocks: list[StreamTime] = []
        self._ends: list[Any] = []

    def __enter__(self) -> WholeLoad:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.enter()
        streams = () if self._copies is None else (self._copies, self._session.driver_stream)
        self._ends = [self._clock.event(stream) for stream in streams]
        if not self.close_within(_SETTLE_S):
            self._resources.park(self)

    def close_within(self, seconds: float) -> bool:
        """Give all back, if the GPU has done with it by then."""
        if not self._clock.settle(self._ends, seconds):
            return False
        for clock in self._clocks:
            clock.close()
        self._memory.clear()
        self._uploads.close()
        if self._board is not None:
            self._board.close()
        if self._copies is not None:
            self._resources.give_back_stream(self._copies, urgent=True)
        while self._runs:
            self._resources.maps.give_back_run(self._runs.pop())
        return True

    def read(self) -> dict[str, Held] | None:
        """The columns' rows, by name; None where not all of their pages are pinned. The host waits once.

        Raises:
            CorruptionError: a file is not as it was written; StorageError: it cannot be examined.
            MemoryLimitError: there is too little memory.
            CancelledError, GpuError: as scans do.
        """
        self._session.enter()
        if not self._take_runs():
            return None
        self._board = CounterBoard(self._session, self._resources.blocks)
        self._copies = self._resources.take_stream(urgent=True)
        payloads = [self._allocate(self._payload_bytes(column)) for column in self._plan.columns]
        self._session.follow(self._copies, self._session.driver_stream)
        reading = []
        for column, run, payload in zip(self._plan.columns, self._runs, payloads, strict=True):
            self._work.check()
            reading.append(self._start(column, run, payload))
        stream = self._session.driver_stream
        self._board.copy_back(stream)
        self._clock.wait_for(stream)
        for one in reading:
            self._require_right(one)
        return {one.column.name: self._finish(one) for one in reading}

    def _take_runs(self) -> bool:
        resident, looks = self._plan.resident, [FileLook(fragment) for fragment in self._work.fragments]
        for look in looks:
            look.require_whole()
        stamps = [look.stamp for look in looks]
        for column in self._plan.columns:
            stored = resident.stored(column.name, "values")
            run = self._resources.maps.take_run(resident, f"{column.name} values", stored, stamps)
            if run is None:
                return False
            self._runs.append(run)
        return True

    def _payload_bytes(self, column: WholeColumn) -> int:
        """Room for the column as it is stored; kernels look at whole vectors."""
        return max(column.size, self._plan.resident.count * VECTOR_ROWS * column.stored_bits // 8) + SLACK

    def _allocate(self, size: int) -> rmm.DeviceBuffer:
        memory = self._session.allocate_entered(max(size, 16), "reading columns whole")
        self._memory.append(memory)
        return memory

    def _start(self, column: WholeColumn, run: PinnedRun, payload: rmm.DeviceBuffer) -> _Reading:
        """Have it copied, compared with its checksums and made into values."""
        session, copies = self._session, self._copies
        packed = self._plan.resident.is_packed(column.name)
        requests = self._payload_requests(column) if packed else self._value_requests(column)
        clock = StreamTime(session, copies)
        self._clocks.append(clock)
        start_copies(session.gpu.cuda, requests, run.places.hosts[requests["nsid"]], payload.ptr, copies)
        clock.end()
        session.follow(session.driver_stream, copies)
        runs, blocks = count_requests(requests, self._block_bytes)
        counters = ReadCounters(runs, blocks, blocks * self._block_bytes)
        bad = self._check(column, payload, packed=packed)
        found = _Reading(column, counters, clock, payload, bad)
        if packed:
            self._unpack(found, payload)
        if column.joined is not None:
            self._look_up(found)
        return found

    def _payload_requests(self, column: WholeColumn) -> NDArray[Any]:
        resident, name = self._plan.resident, column.name
        requests, _ = run_requests(
            *((0, resident.count), resident.payload_breaks(name), resident.payload_begins(name)),
            *(resident.payload_sums(name), resident.firsts[:-1].astype(np.int64)),
        )
        return requests

    def _value_requests(self, column: WholeColumn) -> NDArray[Any]:
        fragments = self._work.fragments
        found = np.zeros(len(fragments), REQUEST)
        sizes = np.array([fragment.rows for fragment in fragments], np.int64) * column.bits // 8
        found["source"] = self._plan.resident.offsets(column.name, "values")
        found["target"], found["bytes"] = np.cumsum(sizes) - sizes, sizes
        found["nsid"] = np.arange(len(fragments))
        kept: NDArray[Any] = found[sizes > 0]
        return kept

    def _check(self, column: WholeColumn, memory: rmm.DeviceBuffer, *, packed: bool) -> Slot | None:
        if not self._work.context.settings.verifies:
            return None
        assert self._board is not None
        resident, launcher, bad = self._plan.resident, self._resources.launcher, self._board.take(4)
        checksums, count = resident.checksums(column.name, "values"), resident.count
        grid = launcher.grid(count, WARPS, CHECK_BLOCKS)
        if packed:
            width = max(column.bits // 8, 1)
            where = (resident.parameters(column.name), resident.vectors(), 0, resident.vector_rows(), 0)
            launcher.start(
                launcher.kernel("packed/load", "scan_packed_crc"),
                *(FILES.pack(*where, width, self._block_bytes), resident.payload_slots(column.name), count),
                *(memory.ptr, checksums, bad.address),
                grid=grid,
                stream=self._session.driver_stream,
            )
            return bad
        launcher.start(
            launcher.kernel("scan_crc", "scan_crc"),
            *(memory.ptr, column.bits, resident.vector_rows(), count),
            *(crc_shifts(VECTOR_ROWS * column.bits // 8), checksums, None, None, None, bad.address),
            grid=grid,
            stream=self._session.driver_stream,
        )
        return bad

    def _unpack(self, reading: _Reading, payload: rmm.DeviceBuffer) -> None:
        assert self._board is not None
        resident, launcher, name = self._plan.resident, self._resources.launcher, reading.column.name
        count, column = resident.count, reading.column
        reading.values = self._allocate(count * VECTOR_ROWS * column.made_bits // 8)
        if resident.states(name) is not None:
            reading.validity = self._allocate(count * VECTOR_ROWS // 8)
            reading.nulls = self._board.take(4)
        packed = PACKED.pack(
            *(resident.parameters(name), resident.payload_slots(name), payload.ptr, resident.vectors()),
            *(resident.scales(name), resident.vector_rows()),
        )
        launcher.start(
            launcher.kernel("packed/gather", "scan_packed_unpack", value_define(column.made_kind)),
            *(packed, count, reading.values.ptr),
            None if reading.validity is None else reading.validity.ptr,
            None if reading.nulls is None else reading.nulls.address,
            grid=launcher.grid(count, WARPS),
            stream=self._session.driver_stream,
        )

    def _look_up(self, reading: _Reading) -> None:
        """Places of the codes in the joined dictionaries."""
        assert self._board is not None
        assert reading.column.joined is not None
        resident, launcher, joined = self._plan.resident, self._resources.launcher, reading.column.joined
        fragments = resident.fragments
        starts = [joined.firsts[str(fragment.path)] for fragment in fragments]
        last = starts[-1] + dictionary_size(fragments[-1], reading.column.name)
        firsts = np.array([*starts, last, joined.dictionary.size], np.uint32)
        places, reading.unknown = self._allocate(4 * self._rows), self._board.take(4)
        launcher.start(
            launcher.kernel("scan_codes", "scan_codes"),
            *(reading.values.ptr, reading.column.made_bits),
            None if reading.validity is None else reading.validity.ptr,
            *(None, self._rows, resident.vectors(), resident.count),
            *(self._uploads.put(firsts, self._session.driver_stream), len(fragments) + 1),
            *(places.ptr, reading.unknown.address),
            grid=launcher.grid(self._rows),
            stream=self._session.driver_stream,
        )
        reading.values = places

    def _require_right(self, reading: _Reading) -> None:
        assert self._board is not None
        name = reading.column.name
        found = 0 if reading.bad is None else self._board.word(reading.bad)
        if found:
            fragment, number = self._vector(found)
            problem = f'column "{name}", vector {number}: its values do not match their checksum'
            raise CorruptionError(problem, fragment.path)
        found = 0 if reading.unknown is None else self._board.word(reading.unknown)
        if found:
            fragment, _ = self._vector(found)
            raise CorruptionError(f'column "{name}" refers to values beyond its dictionary', fragment.path)

    def _vector(self, behind: int) -> tuple[Any, int]:
        """Fragment and number of the vector with so many from itself on."""
        resident = self._plan.resident
        vector = resident.count - behind
        place = int(np.searchsorted(resident.firsts, vector, "right")) - 1
        return resident.fragments[place], vector - int(resident.firsts[place])

    def _finish(self, reading: _Reading) -> Held:
        self._account(reading)
        column = reading.column
        assert self._board is not None
        if column.joined is not None:
            dictionary, nulls = column.joined.dictionary, reading.validity is not None
            return libcudf_rows.late_rows(self._session, dictionary, reading.values, self._rows, nulls=nulls)
        kind, bits = column.made_kind, column.made_bits
        made = DeviceColumn(kind, bits, self._rows, reading.values, reading.validity, reading.nulls)
        found = made.finish(self._board)
        is_narrow = kind != column.stored.stored_kind
        return libcudf_rows.narrow_rows(self._session, found) if is_narrow else found

    def _account(self, reading: _Reading) -> None:
        profile = self._work.profile
        with profile.lock:
            figures = profile.columns[reading.column.name]
            figures.counters += reading.counters
            figures.paths[COPY_ENGINE] += 1
            figures.streamed += len(self._work.fragments)
            figures.vectors_total += self._plan.resident.count
            figures.vectors_read += self._plan.resident.count
        figures.clock.add(reading.clock.seconds())
