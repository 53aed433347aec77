"""What reads cost a GPU: rates of its ways to a table's files, for the read planner."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from statistics import median_low
from types import MappingProxyType
from typing import Final, Literal

from bamquery.storage.read_planner.cost_model import CostModel, Path, PathRates, ProcessorRates
from bamquery.storage.read_planner.device_profile import DeviceProfile
from bamquery.storage.read_planner.profile_cache import keep_measured, load_measured

_RING_CORES: Final = 0.25e-9
"""Seconds of a core for each byte that the software controller carries: measured, docs/benchmarks/gpu.md."""
_COPY_CORES: Final = 0.01e-9
"""The same of the copy engine: who starts its copies."""
_NAMES: Final = (
    *("stream", "copies", "vectors", "picks", "blocks", "latency"),
    *("rows", "values", "start", "checksum"),
)


HOST_SECONDS: Final[Mapping[Path, float]] = MappingProxyType(
    {Path.SEQUENTIAL: 6e-4, Path.VECTORS: 8e-4, Path.BLOCKS: 5e-4, Path.ROWS: 3e-4}
)
"""Of the host's, to start one column's read: until there are measurements."""
_REMEMBERED: Final = 15


class HostTimes:
    """What it took the host to start a column's reads, by path; thread-safe.

    A host's time is no rate of a device: it is Python's, which others wait for, too. So it is not measured by
    itself, but of the reads that scans make, and their median counts.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen = {path: deque([seconds], _REMEMBERED) for path, seconds in HOST_SECONDS.items()}

    def add(self, path: Path, seconds: float) -> None:
        """A read of one column was started."""
        with self._lock:
            self._seen[path].append(seconds)

    def seconds(self) -> dict[Path, float]:
        """Of each path."""
        with self._lock:
            return {path: median_low(seen) for path, seen in self._seen.items()}


@dataclass(frozen=True, slots=True)
class GpuProfile:
    """What a GPU gets out of files in the page cache.

    Attributes:
        stream: bytes a second of the copy engine.
        copies: that it starts a second.
        vectors: bytes a second of a kernel that copies vectors from here and there.
        picks: such vectors a second, however narrow.
        blocks: commands a second through queue pairs, of one block each.
        latency: seconds from the start of a kernel that writes commands to the first answer.
        rows: single values a second that a kernel loads where files are pinned, each from a line of its own.
        values: the same of those that lie in a line with another: the kernel's work, hardly the bus's.
        start: seconds that such a kernel takes for one.
        checksum: bytes a second that are compared with CRC-32C.
        source: whether that was measured on this machine.
    """

    stream: float
    copies: float
    vectors: float
    picks: float
    blocks: float
    latency: float
    rows: float
    values: float
    start: float
    checksum: float
    source: Literal["measured", "assumed"] = "assumed"

    @classmethod
    def nominal(cls, io_cores: int) -> GpuProfile:
        """An H200 beside so many cores, as docs/benchmarks/gpu.md has it."""
        return cls(55e9, 2e5, 50e9, 5e7, 7e6 * io_cores, 3e-5, 2e8, 3e10, 1e-5, 1.2e12)

    @classmethod
    def load(cls, key: str) -> GpuProfile | None:
        """What was measured under this key, if anything was."""
        found = load_measured(key, _NAMES)
        return None if found is None else cls(**found, source="measured")

    def keep(self, key: str) -> None:
        """For later processes."""
        keep_measured(key, asdict(self))

    def model(self, io_cores: int, host: Mapping[Path, float] = HOST_SECONDS) -> CostModel:
        """For the planner: columns of one fetch share a kernel, or at least a stream.

        `host`: what the host takes to start a read by each path.
        """
        paths = {
            Path.SEQUENTIAL: PathRates(self.stream, self.copies, self.latency, core_seconds=_COPY_CORES),
            Path.VECTORS: PathRates(self.vectors, self.picks, self.latency),
            Path.BLOCKS: PathRates(self.stream, self.blocks, self.latency, core_seconds=_RING_CORES),
            Path.ROWS: PathRates(self.stream, self.rows, self.start, self.values),
        }
        paths = {path: replace(rates, host_seconds=host[path]) for path, rates in paths.items()}
        return CostModel(paths, ProcessorRates(self.checksum), io_cores, together=True)


def direct_model(volume: DeviceProfile, checksum: float, io_cores: int) -> CostModel:
    """Past the page cache: what the CPU's reader got is the drive's doing, and rings carry all."""
    scattered = volume.scattered or volume.bandwidth
    paths = {
        Path.SEQUENTIAL: _by_rings(volume.bandwidth, volume),
        Path.VECTORS: _by_rings(scattered, volume),
        Path.BLOCKS: _by_rings(scattered, volume),
    }
    return CostModel(paths, ProcessorRates(checksum), io_cores, together=True)


def _by_rings(bandwidth: float, volume: DeviceProfile) -> PathRates:
    return PathRates(bandwidth, volume.iops, volume.latency, core_seconds=_RING_CORES)
