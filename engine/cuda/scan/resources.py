"""What a GPU's scans share and keep between queries."""

from __future__ import annotations

import atexit
import threading
import weakref
from contextlib import suppress
from typing import Any, Final

from bamquery.engine.cuda.scan.file_maps import FileMaps
from bamquery.engine.cuda.scan.host_blocks import HostBlocks
from bamquery.engine.cuda.scan.launching import Launcher
from bamquery.engine.cuda.scan.resident import ResidentRuns
from bamquery.engine.cuda.scan.rings import Rings, RingShape
from bamquery.engine.cuda.session import CudaSession

_known: dict[int, ScanResources] = {}
_lock = threading.Lock()


class ScanResources:
    """Kernels, pinned memory, queue pairs and streams of one GPU; thread-safe."""

    def __init__(self, session: CudaSession) -> None:
        """See `resources_of`."""
        gpu = session.gpu
        self.blocks: Final = HostBlocks(gpu)
        self.maps: Final = FileMaps(gpu)
        self.launcher: Final = Launcher(gpu, session.lock)
        self.runs: Final = ResidentRuns(self.blocks, self.launcher)
        self._gpu = gpu
        self._rings: dict[RingShape, Rings] = {}
        self._streams: dict[bool, list[Any]] = {False: [], True: []}
        self._lock = threading.Lock()
        atexit.register(_stop, weakref.ref(self))

    def rings(self, shape: RingShape) -> Rings:
        """Queue pairs of that shape, made at first use.

        Raises:
            GpuError: their memory cannot be pinned.
        """
        with self._lock:
            found = self._rings.get(shape)
            if found is None:
                found = self._rings[shape] = Rings(self._gpu, shape)
            return found

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
        for rings in self._rings.values():
            with suppress(TimeoutError):
                rings.controller.stop(1.0)


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
