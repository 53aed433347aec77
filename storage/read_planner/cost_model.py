"""What reading costs: seconds of each thing that it needs, by measured rates.

T = Σ starts + rounds x latency + max( Σ bytes / bandwidth, Σ commands x c, Σ checks and decoding, Σ carried )

over all columns that are read together, which share these resources as in a roofline (Williams, Waterman,
Patterson, CACM 52(4), 2009). c and the bandwidths are fitted to reads of several sizes, t(size) = c + size /
bandwidth (Hockney, Parallel Computing 20(3), 1994). Where whoever sends commands looks at single values, too,
these are added to the commands (`PathRates.values`): a thread that waits for one does not look at others.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

SINGLE_ROWS: Final = "rows of {}"
"""The form of values that are read and decoded one by one, out of the blocks that hold them."""


class Path(enum.Enum):
    """How bytes travel, which decides what they cost."""

    SEQUENTIAL = "sequential"
    """In large requests, one after the other."""
    VECTORS = "vectors"
    """Whole vectors, here and there."""
    BLOCKS = "blocks"
    """Single blocks, here and there."""
    ROWS = "rows"
    """Single values, by whoever wants them: where a GPU sees a file's pages."""

    __hash__ = object.__hash__  # as `Strategy`'s


class Resource(enum.Enum):
    """What a read may have to wait for."""

    LATENCY = "latency"
    """The way there and back, once for each round of reads that need the answers of those before."""
    LINK = "bandwidth"
    """Of the drive or the bus."""
    COMMANDS = "commands"
    """However small they are."""
    PROCESSOR = "processor"
    """Checksums and decoding."""
    CORES = "cores"
    """Of the host, that carry bytes to a GPU."""

    __hash__ = object.__hash__  # as `Strategy`'s


@dataclass(frozen=True, slots=True)
class PathRates:
    """One way to a file.

    Attributes:
        bandwidth: bytes a second.
        commands: a second, as many under way as fit.
        latency: seconds from the first command to the first answer.
        values: a second that whoever sends commands looks at, one by one, before it sends the next. Infinite:
            it looks at none.
        core_seconds: of a processor, for each byte that it carries.
        host_seconds: what the thread that plans takes to start one column's read. It starts all reads of a
            scan, one after the other, so nothing of that is done at the same time.
    """

    bandwidth: float
    commands: float
    latency: float
    values: float = math.inf
    core_seconds: float = 0.0
    host_seconds: float = 0.0


@dataclass(slots=True)
class ReadDemand:
    """What one column's read asks for.

    Attributes:
        path: how the bytes travel.
        bytes: of all blocks.
        commands: that fetch them.
        rounds: of commands that need the answers of those before.
        checked: bytes that are compared with checksums.
        values: that are decoded.
        form: how they are stored; see `ProcessorRates`.
    """

    path: Path
    bytes: int
    commands: int
    rounds: int = 1
    checked: int = 0
    values: int = 0
    form: str = "plain"

    def with_bytes(self, size: int) -> ReadDemand:
        """The same of so many bytes."""
        others = self.commands, self.rounds, self.checked, self.values, self.form
        return ReadDemand(self.path, size, *others)


@dataclass(frozen=True, slots=True)
class ProcessorRates:
    """What whoever looks at the bytes gets done.

    Attributes:
        checksum: bytes a second.
        decode: values a second by their form; a form that is missing costs nothing.
    """

    checksum: float
    decode: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


Cost: TypeAlias = "tuple[float, float, float, float, float]"
"""Seconds of each `Resource`, in their order."""
FREE: Final[Cost] = (0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class CostModel:
    """What planned reads cost on one device and volume.

    Attributes:
        paths: rates of each.
        processor: that checks and decodes.
        io_cores: that may carry bytes at the same time.
        overlaps: bytes, commands and work go on at the same time. Not in a page cache, where one processor
            does one after the other.
        together: columns of one fetch share their rounds. Not where they are read one after the other.
    """

    paths: Mapping[Path, PathRates]
    processor: ProcessorRates
    io_cores: float = 1.0
    overlaps: bool = True
    together: bool = False

    def cost(self, demand: ReadDemand) -> Cost:
        """What one read takes of each resource."""
        if not demand.commands:
            return FREE
        path = self.paths[demand.path]
        decoded = self.processor.decode.get(demand.form)
        work = demand.checked / self.processor.checksum
        work += 0.0 if decoded is None else demand.values / decoded
        link = demand.bytes / path.bandwidth
        commands = demand.commands / path.commands + demand.values / path.values
        carried = demand.bytes * path.core_seconds / self.io_cores
        return demand.rounds * path.latency, link, commands, work, carried

    def seconds(self, costs: Iterable[Cost]) -> float:
        """How long reads together should take."""
        latency = link = commands = work = carried = 0.0
        for cost in costs:
            latency = max(latency, cost[0]) if self.together else latency + cost[0]
            link, commands = link + cost[1], commands + cost[2]
            work, carried = work + cost[3], carried + cost[4]
        if self.overlaps:
            return latency + max(link, commands, work, carried)
        return latency + link + commands + work + carried

    def host_seconds(self, demand: ReadDemand) -> float:
        """What the thread that plans takes to start one read; never corrected, as chunks tell of devices."""
        return self.paths[demand.path].host_seconds if demand.commands else 0.0

    def scarcest(self, cost: Cost) -> Resource:
        """What a read spends most on, its latency left aside."""
        shared = cost[1:]
        return _SHARED[shared.index(max(shared))]


_SHARED: Final = tuple(Resource)[1:]
