"""What the device under a file can do, measured once per volume and kind of reader."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeAlias

import numpy as np

from bamquery import _native
from bamquery.errors import StorageError
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.read_planner import cost_model
from bamquery.storage.read_planner.cost_model import CostModel, PathRates, ProcessorRates
from bamquery.storage.read_planner.profile_cache import keep_measured, load_measured
from bamquery.storage.readers.block_reader import BlockReader, ReadCounters
from bamquery.storage.readers.opening import open_blocks

Clock: TypeAlias = Callable[[], float]
"""Seconds that only grow."""

_REQUEST_BYTES: Final = _native.LARGEST_READ
_SECONDS_A_PHASE: Final = 0.08
"""Each of bandwidth, three sizes of scattered reads, and latency is measured for about so long."""
_PIECE_BYTES: Final = 4 << 20
"""Streamed by one call; smaller files say too little about their device."""
_VECTOR_BYTES: Final = 8 * VECTOR_ROWS
_SAMPLE_BYTES: Final = 64 << 20
_BATCH: Final = 1024
"""Scattered reads a call; enough to keep every queue of a drive busy."""
_SIZES: Final = (4 << 10, 64 << 10)
"""Of scattered reads, beside those of a block."""
_BATCH_BYTES: Final = 4 << 20
_NAMES: Final = ("bandwidth", "iops", "latency", "scattered", "request_bytes")


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """What one kind of reader gets out of one volume.

    Attributes:
        bandwidth: of large requests, bytes a second.
        iops: scattered reads a second, their bytes left aside, with as many in flight as the reader has.
        latency: of one read read_block, seconds.
        scattered: bytes a second of scattered reads, however many; 0: as much as of large requests.
        request_bytes: the largest request; longer runs of blocks are several.
        source: whether the numbers are this volume's.
    """

    bandwidth: float
    iops: float
    latency: float
    scattered: float = 0.0
    request_bytes: int = _REQUEST_BYTES
    source: Literal["measured", "assumed"] = "assumed"

    _known: ClassVar[dict[str, DeviceProfile]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {name: getattr(self, name) for name in self.__slots__}

    def model(self, processor: ProcessorRates, kind: str) -> CostModel:
        """What reads by that kind of reader cost.

        Of a page cache, copying is the processor's work, too, and so nothing goes on at the same time.
        """
        sequential = PathRates(self.bandwidth, self.iops, self.latency)
        scattered = PathRates(self.scattered or self.bandwidth, self.iops, self.latency)
        paths = {
            cost_model.Path.SEQUENTIAL: sequential,
            cost_model.Path.VECTORS: scattered,
            cost_model.Path.BLOCKS: scattered,
        }
        return CostModel(paths, processor, overlaps=kind == "direct")

    @classmethod
    def measure(cls, path: Path, kind: str) -> DeviceProfile:
        """The profile of the volume that holds `path`, a file of some size, for readers of that kind.

        Taken from the process's or the user's cache where it is there; measuring takes about half a
        second. A volume that cannot be measured gets the assumed profile.
        """
        key = _volume(path, kind)
        with cls._lock:
            profile = cls._known.get(key)
            if profile is None:
                kept = load_measured(key, _NAMES)
                if kept is not None:
                    kept["request_bytes"] = int(kept["request_bytes"])
                    profile = cls(**kept, source="measured")  # type: ignore[arg-type]
                else:
                    profile = _measure(path, kind, time.perf_counter)
                    if profile is None:
                        return ASSUMED[kind]  # not kept: another file may be large enough
                    keep_measured(key, profile.to_dict())
                cls._known[key] = profile
            return profile


ASSUMED: Final = {
    # A page cache that has the file: memory bandwidth of one core, and a cache miss a read.
    "mapped": DeviceProfile(bandwidth=6.5e9, iops=1e7, latency=2e-6),
    # A modest NVMe drive.
    "direct": DeviceProfile(bandwidth=2e9, iops=1e5, latency=1e-4),
}


def measure_reader(reader: BlockReader, size: int, clock: Clock) -> DeviceProfile:
    """Measure with a reader of a file of `size` bytes, `_PIECE_BYTES` at least; nothing is cached.

    For mapped files it is memory that is measured, since what the page cache has to fetch first is read once
    before.
    """
    generator = np.random.default_rng(0)
    counters = ReadCounters()
    vectors = np.arange(0, _PIECE_BYTES, _VECTOR_BYTES)
    lengths = np.full(len(vectors), _VECTOR_BYTES)
    pieces = 0
    started = clock()
    for start in range(0, min(size, _SAMPLE_BYTES) - _PIECE_BYTES + 1, _PIECE_BYTES):
        reader.read_ranges(vectors + start, lengths, counters)
        pieces += 1
        if clock() - started > _SECONDS_A_PHASE:
            break  # of a slow device, a smaller sample will do

    def stream(turn: int) -> int:
        reader.read_ranges(vectors + turn % pieces * _PIECE_BYTES, lengths, counters)
        return _PIECE_BYTES

    def scatter(bytes_: int) -> Callable[[int], int]:
        places = size // bytes_
        batch = min(_BATCH, _BATCH_BYTES // bytes_)

        def read(_: int) -> int:
            rows = np.unique(generator.integers(0, places, batch))
            if bytes_ == reader.block_size:
                reader.gather(0, bytes_, 8, rows, counters)
            else:
                reader.read_ranges(rows * bytes_, np.full(len(rows), bytes_), counters)
            return len(rows)

        return read

    def read_block(_: int) -> int:
        rows = generator.integers(0, size // reader.block_size, 1)
        reader.gather(0, reader.block_size, 8, rows, counters)
        return 1

    bandwidth = _rate(stream, clock)
    sizes = [reader.block_size, *(s for s in _SIZES if s > reader.block_size)]
    seconds = [1 / _rate(scatter(bytes_), clock) for bytes_ in sizes]
    command, scattered = fit_reads(sizes, seconds, bandwidth)
    return DeviceProfile(
        bandwidth=bandwidth,
        iops=1 / command,
        latency=1 / _rate(read_block, clock),
        scattered=scattered,
        source="measured",
    )


def fit_reads(sizes: Sequence[int], seconds: Sequence[float], bandwidth: float) -> tuple[float, float]:
    """Seconds c and bandwidth of t(size) = c + size / bandwidth, by least squares of the relative errors.

    Scattered reads are no faster than streams of `bandwidth`, and c is at least a fiftieth of the smallest
    read's time: less than can be told apart.
    """
    times = np.array(seconds)
    weighted = np.stack([np.ones(len(times)), np.array(sizes, float)], axis=1) / times[:, None]
    (command, slope), *_ = np.linalg.lstsq(weighted, np.ones(len(times)), rcond=None)
    slope = max(float(slope), 1 / bandwidth)
    if command < times[0] / 50:
        command = max(times[0] - sizes[0] * slope, times[0] / 50)
    return float(command), 1 / slope


def _rate(work: Callable[[int], int], clock: Clock) -> float:
    """What `work` returns, a second; the first call only warms up."""
    work(0)
    done = 0
    turn = 0
    start = clock()
    elapsed = 0.0
    while elapsed < _SECONDS_A_PHASE:
        done += work(turn)
        turn += 1
        elapsed = clock() - start
    return done / elapsed


def _measure(path: Path, kind: str, clock: Clock) -> DeviceProfile | None:
    try:
        size = path.stat().st_size
        if size < _PIECE_BYTES:
            return None
        reader = open_blocks(path, size, direct=kind == "direct")
    except (OSError, StorageError):
        return None  # whoever reads the file next says what is wrong with it
    try:
        return measure_reader(reader, size, clock)
    except StorageError:
        return None
    finally:
        reader.close()


def _volume(path: Path, kind: str) -> str:
    """Names a volume across restarts where the file system has an id of its own."""
    try:
        return f"{os.statvfs(path).f_fsid:016x}-{os.stat(path).st_dev:x}-{kind}"
    except OSError:
        return f"unknown-{kind}"
