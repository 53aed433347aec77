"""What a scan did, and each of its columns.

Bytes read come from `ReadCounters`, and bytes needed from DESIGN's definition: nothing else counts I/O.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bamquery.engine.human_units import ratio
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.profiling.planned_seconds import PlannedSeconds
from bamquery.storage.readers.block_reader import ReadCounters

if TYPE_CHECKING:
    from bamquery.engine.profiling.queue_profile import QueueProfile
    from bamquery.engine.profiling.vector_map import VectorMap
    from bamquery.storage.fragments.column_storage import ColumnStorage
    from bamquery.storage.fragments.fragment import Fragment


_clocks_lock: Final = threading.Lock()
"""Of all clocks: it is held for a few instructions, and a read starts several."""


class ReadClock:
    """Wall-clock time during which at least one thread was reading; thread-safe."""

    def __init__(self) -> None:
        self._active = 0
        self._since = 0.0
        self._seconds = 0.0

    @property
    def seconds(self) -> float:
        """Time with a read in progress, so far."""
        with _clocks_lock:
            running = time.perf_counter() - self._since if self._active else 0.0
            return self._seconds + running

    def add(self, seconds: float) -> None:
        """Time that somebody else measured: a GPU's own clock knows when its kernels read."""
        with _clocks_lock:
            self._seconds += seconds

    def measure_read(self) -> MeasuredRead:
        """Around one read."""
        return MeasuredRead((self,))


class MeasuredRead:
    """Around one read that several clocks measure: a chunk has a few, so it is no generator."""

    __slots__ = ("_clocks",)

    def __init__(self, clocks: Sequence[ReadClock]) -> None:
        self._clocks = clocks

    def __enter__(self) -> None:
        """The read begins."""
        with _clocks_lock:
            now = time.perf_counter()
            for clock in self._clocks:
                if clock._active == 0:
                    clock._since = now
                clock._active += 1

    def __exit__(self, *_: object) -> None:
        """The read ends."""
        with _clocks_lock:
            now = time.perf_counter()
            for clock in self._clocks:
                clock._active -= 1
                if clock._active == 0:
                    clock._seconds += now - clock._since


@dataclass
class ColumnProfile:
    """One column of one scan. Written under its `ScanProfile`'s lock."""

    name: str
    role: str
    """`filter`: only compared; `output`: only given out; `filter, output`: both, read once."""
    streamed: int = 0
    """Reads that streamed; a read is one chunk's part of one fragment."""
    fetched_vectors: int = 0
    """Reads that fetched the vectors of surviving rows."""
    fetched_blocks: int = 0
    """Reads that fetched the blocks of surviving rows."""
    cached: int = 0
    """Parts of the table whose rows were in the GPU's memory."""
    vectors_total: int = 0
    """Vectors of the chunks that the scan came to."""
    vectors_pruned: int = 0
    """Of those, vectors that zone maps ruled out."""
    vectors_read: int = 0
    """Of those, vectors of which something was read."""
    vectors_compared: int = 0
    """Of the vectors read, those whose rows a CPU compared as codes, without decoding them."""
    parts_pruned: int = 0
    """Parts (of 128 rows) of these that zone maps ruled out, so that they were not read."""
    rows_needed: int = 0
    """Rows this column had to look at."""
    bytes_needed: int = 0
    """`rows_needed` in plain Arrow: values, null bits where there are any, offsets and bytes of strings."""
    counters: ReadCounters = field(default_factory=ReadCounters)
    bytes_fetched: int = 0
    """Of the bytes in `counters`, those of vectors and blocks that were fetched; the others streamed."""
    clock: ReadClock = field(default_factory=ReadClock)
    planned: PlannedSeconds = field(default_factory=PlannedSeconds)
    """By the read planner's costs, beside what was measured of the same reads."""
    paths: Counter[str] = field(default_factory=Counter)
    """How bytes came to a GPU (`copy engine`, `zero-copy`, `queue pairs`), by reads; empty on the CPU."""

    @property
    def amplification(self) -> float | None:
        """Bytes read / bytes needed; None where nothing was needed."""
        return ratio(self.counters.bytes, self.bytes_needed)

    @property
    def strategy(self) -> str:
        """The ways it was read, most used first: `stream`, `vectors, blocks`, `cached`; empty if never."""
        counts = {
            "stream": self.streamed,
            "vectors": self.fetched_vectors,
            "blocks": self.fetched_blocks,
            "cached": self.cached,
        }
        return ", ".join(sorted((name for name, n in counts.items() if n), key=lambda name: -counts[name]))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "name": self.name,
            "role": self.role,
            "streamed": self.streamed,
            "fetched_vectors": self.fetched_vectors,
            "fetched_blocks": self.fetched_blocks,
            "cached": self.cached,
            "vectors_total": self.vectors_total,
            "vectors_pruned": self.vectors_pruned,
            "vectors_read": self.vectors_read,
            "vectors_compared": self.vectors_compared,
            "parts_pruned": self.parts_pruned,
            "rows_needed": self.rows_needed,
            "bytes_needed": self.bytes_needed,
            "bytes_read": self.counters.bytes,
            "bytes_fetched": self.bytes_fetched,
            "blocks_requested": self.counters.blocks,
            "commands": self.counters.commands,
            "amplification": self.amplification,
            "read_seconds": self.clock.seconds,
            "expected_seconds": self.planned.expected,
            "taken_seconds": self.planned.taken,
            "iops": ratio(self.counters.commands, self.clock.seconds),
            "bytes_per_second": ratio(self.counters.bytes, self.clock.seconds),
            "paths": dict(self.paths),
        }


@dataclass
class ScanProfile(OperatorProfile):
    """A scan of stored fragments: its columns in the order in which they were first read."""

    source: str = ""
    version: int = 0
    rows_total: int = 0
    """Rows of the table."""
    rows_scanned: int = 0
    """Rows of the chunks that the scan came to, pruned ones included: fewer where LIMIT stopped it."""
    reader: str = ""
    """`mapped` or `direct`."""
    io_path: str = ""
    """How readers asked the kernel, see `BlockReader.io_path`; empty where no file was opened."""
    block_size: int = 0
    verify: bool = True
    """Whether vectors that were read whole were checked against their CRC-32C."""
    zone_maps: bool = True
    strategy: str = "auto"
    """The setting: `auto`, or the one strategy asked for."""
    volume: dict[str, Any] = field(default_factory=dict)
    """The `DeviceProfile` that strategies were chosen by; empty where no file was opened."""
    columns: dict[str, ColumnProfile] = field(default_factory=dict)
    fragments: Sequence[Fragment] = field(default=(), repr=False)
    """Of the table; empty where nothing of them was asked for."""
    notes: list[str] = field(default_factory=list)
    """What did not run as asked, and why."""
    queues: QueueProfile | None = None
    """Queue pairs that a GPU drove; None where it drove none."""
    vector_map: VectorMap | None = None
    """What was done with each vector, where the setting `profile_vectors` asks for it."""
    clock: ReadClock = field(default_factory=ReadClock)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _storage: dict[str, ColumnStorage] = field(default_factory=dict, repr=False)

    def measure_read(self, *columns: str) -> MeasuredRead:
        """Around one read of columns: by the scan's clock and by theirs."""
        return MeasuredRead([self.clock, *[self.columns[column].clock for column in columns]])

    def storage(self, column: str) -> ColumnStorage:
        """How all of the table's fragments store a column; looked up when somebody asks."""
        from bamquery.storage.fragments.column_storage import (  # noqa: PLC0415 (which few queries need)
            table_column_storage,
        )

        found = self._storage.get(column)
        if found is None:
            found = self._storage[column] = table_column_storage(self.fragments, column)
        return found

    @property
    def reader_path(self) -> str:
        """`mapped`, `direct (io_uring)` or `direct (preadv: why)`."""
        return f"{self.reader} ({self.io_path})" if self.reader == "direct" and self.io_path else self.reader

    @property
    def verified(self) -> str:
        """`yes`, `no` (switched off), or `partly`: blocks cannot be verified."""
        if not self.verify:
            return "no"
        return "partly" if any(column.fetched_blocks for column in self.columns.values()) else "yes"

    @property
    def counters(self) -> ReadCounters:
        """All columns together."""
        total = ReadCounters()
        for column in self.columns.values():
            total += column.counters
        return total

    @property
    def bytes_needed(self) -> int:
        """All columns together."""
        return sum(column.bytes_needed for column in self.columns.values())

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        with self.lock:
            return super().to_dict() | {
                "source": self.source,
                "version": self.version,
                "rows_total": self.rows_total,
                "rows_scanned": self.rows_scanned,
                "reader": self.reader,
                "io_path": self.io_path,
                "block_size": self.block_size,
                "verified": self.verified,
                "zone_maps": self.zone_maps,
                "strategy": self.strategy,
                "volume": dict(self.volume),
                "columns": [
                    column.to_dict() | _storage_to_dict(self.storage(name))
                    for name, column in self.columns.items()
                ],
                "queues": None if self.queues is None else self.queues.to_dict(),
                "vector_map": None if self.vector_map is None else self.vector_map.to_dict(),
                "notes": list(self.notes),
            }


def _storage_to_dict(storage: ColumnStorage) -> dict[str, Any]:
    return {
        "encodings": dict(storage.encodings),
        "bits": storage.bits,
        "bytes_stored": storage.stored_bytes,
        "bytes_decoded": storage.plain_bytes,
    }


@dataclass
class FileScanProfile(OperatorProfile):
    """A scan of files that are not BamQuery's: their readers do not say what they read."""

    source: str = ""
    rows_total: int | None = None
    """Rows of the files; None where only reading them tells."""
    rows_scanned: int = 0
    """Rows that came from the reader, before conditions."""
    bytes_total: int | None = None
    """Size of the files as they are stored; None where there is none, as of a stream."""
    bytes_scanned: int = 0
    """How much of that size the rows stand for: not what was read of it."""
    files_total: int = 1
    files_read: int = 1
    """Those that conditions on their paths and folders leave."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        files = {"files_total": self.files_total, "files_read": self.files_read}
        return super().to_dict() | {"source": self.source, "io": "not counted"} | files
