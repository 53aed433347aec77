"""What a benchmark asks for, and the figures that come of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, Self

SECTOR_BYTES = 512
"""Unit of the content that is verified (driver/core/bench/content.hpp), whatever the block size."""


DRIVES = {
    "optane": "Intel Optane P5800X",
    "znand": "Samsung Z-NAND",
    "980pro": "Samsung 980 Pro",
}
"""Names of profiles on the command line, and in bamquery.driver.drive_profile."""


class Pattern(StrEnum):
    """In which order blocks are asked for."""

    SEQUENTIAL = "sequential"
    """Each client goes through its own share of the extent, again and again."""
    RANDOM = "random"
    """Every block is as likely as any other."""
    ZIPF = "zipf"
    """Block of rank r with a probability proportional to r^-theta; ranks are scattered over the extent."""


class PathName(StrEnum):
    """How data gets from the backing to whoever asks."""

    RINGS = "rings"
    """NVMe queue pairs and the software controller; asked for by GPU threads, or by CPU threads."""
    DRIVE = "drive"
    """NVMe queue pairs of real drives, driven by this process; asked for by CPU threads."""
    ZERO_COPY = "zero-copy"
    """GPU threads load from pinned host memory: what the rings are held against. GPU only."""
    COPY_ENGINE = "copy-engine"
    """The host starts copies into GPU memory. GPU only."""
    IO_URING = "io_uring"
    """A loop of the host over io_uring, as fio would do it. Files only."""
    MAPPED = "mapped"
    """memcpy from a memory map, or from memory. CPU only."""


class Access(StrEnum):
    """How the controller reads a file."""

    MAPPED = "mapped"
    """Through the page cache."""
    DIRECT = "direct"
    """Past it, by O_DIRECT."""


@dataclass(frozen=True)
class NamespacePlace:
    """A namespace of a drive: the drive's address on the PCI bus, and the namespace's number."""

    address: str
    nsid: int

    def __str__(self) -> str:
        return f"nvme:{self.address}/{self.nsid}"


@dataclass(frozen=True)
class Backing:
    """Where blocks lie: in host memory, in a file, or on drives, with memory or a file for other paths."""

    path: Path | None = None
    """None: anonymous memory, made for the run."""
    access: Access = Access.MAPPED
    overwrite: bool = False
    """Whether a file that holds anything else may be filled with the benchmark's content."""
    keep: bool = False
    """Whether a file that was made for the run stays."""
    drives: tuple[NamespacePlace, ...] = ()
    writable: bool = False
    """Whether drives may be written to: then they are filled with the content."""
    further: tuple[Path, ...] = ()
    """Files of further controllers."""

    def __str__(self) -> str:
        files = () if self.path is None else (self.path, *self.further)
        beside = ", ".join(f"{path} ({self.access})" for path in files) or "memory"
        drives = ", ".join(map(str, self.drives))
        return drives + (f", beside {beside}" if self.path else "") if drives else beside


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What all workloads have in common. Sizes in bytes."""

    device: str = "cpu"
    """`cpu` or `cuda:<n>`."""
    seed: int = 1
    """Of the content and of the blocks chosen."""
    seconds: float = 5.0
    """How long each path is measured."""
    pairs: int = 1
    """Queue pairs. Each has a client: a thread block of a GPU, or a CPU thread."""
    depth: int = 64
    """Entries of each ring; a power of two from 2 on. A client keeps up to depth - 1 commands in flight."""
    controller_threads: int = 1
    """Of the software controller; 0 (CPU only): clients do its work while they wait."""
    backing: Backing = Backing()
    extent_bytes: int = 256 << 20
    """How much of the backing is touched."""
    lba_bytes: int = 512
    """Logical block of the namespaces: 512 or 4096."""
    profile: str | None = None
    """Drive that the controller imitates (a key of `DRIVES`); None: as fast as it can."""
    drives: int = 1
    """How many such drives each controller imitates: their rates add up, their latency stays."""
    controllers: int = 1
    """Software controllers, each a drive with memory or a file of its own and its share of the extent."""
    stripe_bytes: int = 64 << 10
    """Of the address space that several namespaces make for a cache or an array."""
    verify: bool = True
    """Whether every byte that arrives is compared with what must be there."""
    deadline_seconds: float = 10.0
    """After which a command counts as lost."""

    @property
    def members(self) -> int:
        """Drives, of whichever kind, that share the extent."""
        return len(self.backing.drives) or self.controllers

    def shares(self) -> list[Self]:
        """What each of them has of it: number i holds the content of the seed + 2 i."""
        if self.members == 1:
            return [self]
        files = (self.backing.path, *self.backing.further)
        return [
            replace(
                self,
                seed=self.seed + 2 * number,
                pairs=max(self.pairs // self.members, 1),
                controller_threads=self.controller_threads
                and max(self.controller_threads // self.members, 1),
                backing=replace(
                    self.backing,
                    path=files[number] if self.backing.further else self.backing.path,
                    further=(),
                    drives=self.backing.drives[number : number + 1],
                ),
                extent_bytes=self.extent_bytes // self.members,
                controllers=1,
            )
            for number in range(self.members)
        ]

    def to_dict(self) -> dict[str, Any]:
        """For JSON; a path becomes text."""
        values = asdict(self)
        values["backing"] = str(self.backing)
        return values


@dataclass(frozen=True, kw_only=True)
class BlockWorkload(Setup):
    """Blocks moved between a backing and the device's memory."""

    block_bytes: int = 4096
    """Of one command; a multiple of the logical block, and a power of two."""
    write_share: float = 0.0
    """0: reads only; 1: writes only."""
    pattern: Pattern = Pattern.RANDOM
    theta: float = 0.99
    """Skew of the zipf pattern, > 0."""
    paths: tuple[PathName, ...] = (PathName.RINGS,)

    @property
    def blocks(self) -> int:
        """In the extent."""
        return self.extent_bytes // self.block_bytes


@dataclass(frozen=True, kw_only=True)
class CacheWorkload(Setup):
    """Pages read through the page cache."""

    page_bytes: int = 4096
    cache_bytes: int = 64 << 20
    """Of the pages that fit; what describes them comes on top."""
    pattern: Pattern = Pattern.RANDOM
    theta: float = 0.99
    warm: bool = False
    """Whether all pages are touched once before the clock starts."""


@dataclass(frozen=True, kw_only=True)
class ArrayWorkload(Setup):
    """Elements read through `Array<T>`."""

    operation: str = "gather"
    """`gather`: at indices drawn by the pattern; `scan`: all in order, each client its share."""
    element: str = "int64"
    """Type of the elements: uint8 to uint64, int8 to int64, float32, float64."""
    page_bytes: int = 4096
    cache_bytes: int = 64 << 20
    pattern: Pattern = Pattern.RANDOM
    theta: float = 0.99


@dataclass(frozen=True)
class Latency:
    """From issuing a command to seeing its completion, in nanoseconds; percentiles are upper bounds."""

    mean: float
    p50: int
    p90: int
    p99: int
    p999: int
    max: int


@dataclass(frozen=True)
class DriveFigures:
    """What one drive's namespace did.

    Attributes:
        namespace: which.
        commands: issued.
        bytes: of those that ended well.
        errors: that did not.
        doorbell_writes: to its submission queues' registers; None where nobody counted them.
        pairs: queue pairs that clients had.
        depth: places of each of their rings.
        in_flight: commands, on average (Little's law); None where single commands were not timed.
    """

    namespace: str
    commands: int
    bytes: int
    errors: int
    doorbell_writes: int | None
    pairs: int
    depth: int
    in_flight: float | None = None


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What one path did."""

    path: str
    """A `PathName`, or what a benchmark of the cache calls its own."""
    operations: int
    bytes: int
    seconds: float
    cpu_seconds: float | None = None
    """Processor time of the whole process meanwhile, all threads: clients, controller, verification."""
    latency: Latency | None = None
    errors: int = 0
    """Commands that failed; the first one is in the notes."""
    verified: bool | None = None
    """True: every byte was compared and right; False: some was wrong; None: nothing was compared."""
    notes: tuple[str, ...] = ()
    """What one should know to read the figures."""
    counters: dict[str, float] = field(default_factory=dict)
    """More figures of one path: hits, misses, commands of the controller, ..."""
    drives: tuple[DriveFigures, ...] = ()

    @property
    def iops(self) -> float:
        """Operations a second."""
        return self.operations / self.seconds if self.seconds else 0.0

    @property
    def gigabytes_per_second(self) -> float:
        """10^9 bytes a second."""
        return self.bytes / self.seconds / 1e9 if self.seconds else 0.0

    @property
    def cpu_cores(self) -> float | None:
        """Cores kept busy, on average."""
        return self.cpu_seconds / self.seconds if self.cpu_seconds is not None and self.seconds else None

    @property
    def cores_per_gigabyte(self) -> float | None:
        """Cores for each GB/s."""
        cores, rate = self.cpu_cores, self.gigabytes_per_second
        return cores / rate if cores is not None and rate else None

    @property
    def right(self) -> bool:
        """No command failed, no byte was wrong."""
        return self.errors == 0 and self.verified is not False

    def to_dict(self) -> dict[str, Any]:
        """Everything measured and everything derived, for JSON."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        del values["latency"]
        values["latency_ns"] = asdict(self.latency) if self.latency else None
        values["notes"] = list(self.notes)
        values["drives"] = [asdict(drive) for drive in self.drives]
        return values | {
            "iops": self.iops,
            "gigabytes_per_second": self.gigabytes_per_second,
            "cpu_cores": self.cpu_cores,
            "cores_per_gigabyte": self.cores_per_gigabyte,
        }


class Progress(Protocol):
    """Hears several times a second how far a path is; may raise KeyboardInterrupt."""

    def __call__(self, path: str, seconds: float, operations: int, moved: int) -> None:
        """`operations` and bytes `moved` so far, `seconds` after the path's clock started."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in the middle of a benchmark, with what had been measured."""

    def __init__(self, figures: list[Figures]) -> None:
        """`figures` of the paths done, and of the one under way as far as it went."""
        super().__init__("interrupted")
        self.figures = figures
