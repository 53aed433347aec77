"""What the device under a file can do, measured once per volume and kind of reader."""

from __future__ import annotations

import json
import math
import os
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bamquery import _native
from bamquery.driver.cache_folder import cache_folder
from bamquery.errors import StorageError
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.readers.block_reader import BlockReader, ReadCounters
from bamquery.storage.readers.opening import open_blocks

Clock: TypeAlias = Callable[[], float]
"""Seconds that only grow."""

_CACHE_VERSION: Final = 2
"""Grows where readers change so much that old measurements mislead."""
_REQUEST_BYTES: Final = _native.LARGEST_READ
_SECONDS_A_PHASE: Final = 0.1
"""Each of bandwidth, rate and latency is measured for about so long."""
_PIECE_BYTES: Final = 4 << 20
"""Streamed by one call; smaller files say too little about their device."""
_VECTOR_BYTES: Final = 8 * VECTOR_ROWS
_SAMPLE_BYTES: Final = 64 << 20
_BATCH: Final = 1024
"""Scattered reads a call; enough to keep every queue of a drive busy."""


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """What one kind of reader gets out of one volume.

    Attributes:
        bandwidth: of large requests, bytes a second.
        iops: scattered small reads a second, with as many in flight as the reader has.
        latency: of one read alone, seconds.
        request_bytes: the largest request; longer runs of blocks are several.
        source: whether the numbers are this volume's.
    """

    bandwidth: float
    iops: float
    latency: float
    request_bytes: int = _REQUEST_BYTES
    source: Literal["measured", "assumed"] = "assumed"

    _known: ClassVar[dict[str, DeviceProfile]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def seconds(self, bytes_: int, commands: int) -> float:
        """How long reading should take: the first answer, then whichever of bytes and commands is scarcer."""
        return self.latency + max(bytes_ / self.bandwidth, commands / self.iops)

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
                cache = cache_file()
                profile = None if cache is None else _load_cached(cache, key)
                profile = profile or _measure(path, kind, time.perf_counter)
                if profile is None:
                    return ASSUMED[kind]  # not kept: another file may be large enough
                cls._known[key] = profile
                if cache is not None:
                    _remember(cache, key, profile)
            return profile


ASSUMED: Final = {
    # A page cache that has the file: memory bandwidth of one core, and a cache miss a read.
    "mapped": DeviceProfile(bandwidth=5e9, iops=1e7, latency=2e-6),
    # A modest NVMe drive.
    "direct": DeviceProfile(bandwidth=2e9, iops=1e5, latency=1e-4),
}


def measure_reader(reader: BlockReader, size: int, clock: Clock) -> DeviceProfile:
    """Measure with a reader of a file of `size` bytes; nothing is cached.

    Bandwidth is that of streams of vectors, verified. For mapped files it is that of memory, since what the
    page cache has to fetch first is read once before.
    """
    generator = np.random.default_rng(0)
    counters = ReadCounters()
    vectors = np.arange(0, _PIECE_BYTES, _VECTOR_BYTES)
    lengths = np.full(len(vectors), _VECTOR_BYTES)
    checksums: list[NDArray[np.uint32]] = []
    started = clock()
    for start in range(0, min(size, _SAMPLE_BYTES) - _PIECE_BYTES + 1, _PIECE_BYTES):
        data = reader.read_ranges(vectors + start, lengths, counters)
        checksums.append(_native.strided_crcs(data, _VECTOR_BYTES))
        if clock() - started > _SECONDS_A_PHASE:
            break  # of a slow device, a smaller sample will do

    def stream(turn: int) -> int:
        piece = turn % len(checksums)
        reader.read_ranges(vectors + piece * _PIECE_BYTES, lengths, counters, checksums[piece])
        return _PIECE_BYTES

    blocks = size // reader.block_size

    def scatter(_: int) -> int:
        rows = np.unique(generator.integers(0, blocks, _BATCH))
        reader.gather(0, reader.block_size, 8, rows, counters)
        return len(rows)

    def alone(_: int) -> int:
        reader.gather(0, reader.block_size, 8, generator.integers(0, blocks, 1), counters)
        return 1

    return DeviceProfile(
        bandwidth=_rate(stream, clock),
        iops=_rate(scatter, clock),
        latency=1 / _rate(alone, clock),
        source="measured",
    )


def cache_file() -> Path | None:
    """Where profiles are kept between processes; None for users without a home."""
    folder = cache_folder()
    return None if folder is None else folder / "device-profiles.json"


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


def _load(cache: Path) -> dict[str, Any]:
    try:
        data = json.loads(cache.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(data, dict) or data.get("version") != _CACHE_VERSION:
        return {}
    profiles = data.get("profiles")
    return profiles if isinstance(profiles, dict) else {}


def _load_cached(cache: Path, key: str) -> DeviceProfile | None:
    """A profile that an earlier process measured; None for anything that cannot be one."""
    data = _load(cache).get(key)
    names = ("bandwidth", "iops", "latency", "request_bytes")
    if not isinstance(data, dict) or not all(_positive(data.get(name)) for name in names):
        return None
    return DeviceProfile(
        bandwidth=float(data["bandwidth"]),
        iops=float(data["iops"]),
        latency=float(data["latency"]),
        request_bytes=int(data["request_bytes"]),
        source="measured",
    )


def _positive(value: Any) -> bool:
    return type(value) in {int, float} and math.isfinite(value) and value > 0


def _remember(cache: Path, key: str, profile: DeviceProfile) -> None:
    """Add to the cache; a home that cannot be written to only costs the next process a measurement."""
    with suppress(OSError):
        cache.parent.mkdir(parents=True, exist_ok=True)
        data = {"version": _CACHE_VERSION, "profiles": _load(cache) | {key: asdict(profile)}}
        with tempfile.NamedTemporaryFile("w", dir=cache.parent, delete=False) as file:
            json.dump(data, file, indent=1)
        os.replace(file.name, cache)
