"""What a GPU's scans share and keep between queries."""

from __future__ import annotations

import atexit
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from bamquery.engine.cuda.launcher import Launcher
from bamquery.engine.cuda.scan.columns.dictionaries import KeptDictionaries
from bamquery.engine.cuda.scan.path_rates import GpuProfile, HostTimes
from bamquery.engine.cuda.scan.resources.host_blocks import HostBlocks
from bamquery.engine.cuda.scan.resources.pinned_files import PinnedFiles
from bamquery.engine.cuda.scan.resources.resident_runs import ResidentRuns
from bamquery.engine.cuda.scan.resources.rings import Rings, RingShape
from bamquery.engine.cuda.session import CudaSession
from bamquery.storage.files.mapped_files import MAPPED_FILES

_known: dict[int, ScanResources] = {}
_lock = threading.Lock()


class ParkedScan(Protocol):
    """A scan that was left, whose memory the GPU may still use."""

    def close_within(self, seconds: float) -> bool:
        """Give all back, if the GPU has done with it by then."""
        ...


class ScanResources:
    """Kernels, pinned memory, queue pairs and streams of one GPU; thread-safe."""

    def __init__(self, session: CudaSession) -> None:
        """See `resources_of`."""
        gpu = session.gpu
        self.blocks: Final = HostBlocks(gpu)
        self.maps: Final = PinnedFiles(gpu)
        self.launcher: Final[Launcher] = session.launcher
        self.runs: Final = ResidentRuns(self.blocks, self.launcher)
        self.dictionaries: Final = KeptDictionaries(session.limit)
        self.host_times: Final = HostTimes()
        self.profiles: Final[dict[tuple[Path | None, str], GpuProfile]] = {}
        """What was measured of this GPU, by where that is kept and what it was measured for."""
        self._gpu = gpu
        self._rings: dict[RingShape, Rings] = {}
        self._streams: dict[bool, list[Any]] = {False: [], True: []}
        self._replaced: list[Rings] = []
        """Those that scans still use, although commands were lost."""
        self._parked: list[ParkedScan] = []
        self._lock = threading.RLock()
        MAPPED_FILES.watch(self)
        atexit.register(_stop, weakref.ref(self))

    @property
    def stream_rate(self) -> float:
        """Bytes a second that the copy engine brings, as far as they were measured."""
        known = list(self.profiles.values())
        return known[-1].stream if known else GpuProfile.nominal(1).stream

    def lend_rings(self, shape: RingShape, user: object) -> Rings:
        """Queue pairs of that shape, made at first use and anew where commands were lost; give them back.

        Raises:
            GpuError: their memory cannot be pinned.
        """
        with self._lock:
            found = self._rings.get(shape)
            if found is None or found.broken:
                made = Rings(self._gpu, shape)
                if found is not None:
                    self._replaced.append(found)
                    self._close_replaced()
                found = self._rings[shape] = made
            found.begin(user)
            return found

    def give_back_rings(self, rings: Rings, user: object) -> None:
        """The scan has done with them."""
        with self._lock:
            rings.end(user)
            self._close_replaced()

    def park(self, scan: ParkedScan) -> None:
        """Keep what a scan could not close, as the GPU may still use it."""
        with self._lock:
            self._parked.append(scan)

    def close_parked(self) -> None:
        """Close what has ended by now."""
        with self._lock:
            parked, self._parked = self._parked, []
        for scan in parked:
            if not scan.close_within(0):
                self.park(scan)

    def forget_files(self, folder: Path) -> None:
        """Unpin and close files below a folder that nobody reads."""
        self.maps.forget(folder)
        with self._lock:
            for rings in self._rings.values():
                rings.forget(folder)

    def take_stream(self, *, urgent: bool = False) -> Any:
        """A driver stream that nobody else uses until it is given back; see `Gpu.new_stream`."""
        with self._lock:
            free = self._streams[urgent]
            return free.pop() if free else self._gpu.new_stream(urgent=urgent)

    def give_back_stream(self, stream: Any, *, urgent: bool = False) -> None:
        """Nothing of it runs any more."""
        with self._lock:
            self._streams[urgent].append(stream)

    def stop(self) -> None:
        """End the controllers' threads; give back what is kept between queries."""
        self.runs.close()
        for rings in (*self._rings.values(), *self._replaced):
            with suppress(TimeoutError):
                rings.controller.stop(1.0)

    def _close_replaced(self) -> None:
        for rings in [rings for rings in self._replaced if not rings.is_used]:
            self._replaced.remove(rings)
            rings.close()


def resources_of(session: CudaSession) -> ScanResources:
    """Those of the session's GPU."""
    with _lock:
        found = _known.get(session.ordinal)
        if found is None:
            found = _known[session.ordinal] = ScanResources(session)
        return found


def _stop(resources: weakref.ref[ScanResources]) -> None:
    found = resources()
    if found is not None:
        found.stop()
