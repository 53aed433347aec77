"""Queue pairs on a GPU, whoever serves them, and the kernels of driver/kernels/ring_test.cu."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import IntFlag
from pathlib import Path
from typing import Any

import numpy as np

from bamquery._native import QueueMemory, fill_content
from bamquery.driver.gpu.device import Gpu
from bamquery.driver.gpu.launch import Launch
from bamquery.driver.gpu.queues import GpuQueues
from bamquery.driver.software_controller import SoftwareController

SEED = 7


def content(seed: int, size: int, first_sector: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """What driver/core/bench/content.hpp has in `size` bytes from a sector on."""
    target = np.empty(size, np.uint8)
    if size:
        fill_content(target, seed, first_sector)
    return target


class Mode(IntFlag):
    """RingMode."""

    READ_ANY = 0
    WRITES = 1
    DIVERGENT = 2
    EARLY_EXIT = 4
    HOLDS_SLOT = 8
    SWEEP_WARP = 16


@dataclass(frozen=True)
class Job:
    """RingJob."""

    blocks: int
    nsid: int
    rounds: int
    lbas: int = 1
    modes: Mode = Mode.READ_ANY
    deadline_s: float = 30.0
    seed: int = SEED

    def pack(self) -> bytes:
        deadline_ns = int(self.deadline_s * 1e9)
        return struct.pack(
            "<QQQIIII",
            *(self.seed, self.blocks, deadline_ns, self.nsid, self.rounds, self.lbas, self.modes),
        )


@dataclass(frozen=True)
class Tally:
    """RingTally."""

    commands: int
    wrong: int
    failed: int
    slotless: int
    unleased: int

    @property
    def sound(self) -> bool:
        return self.wrong == self.failed == self.slotless == self.unleased == 0


@dataclass
class DrivenRings:
    """One namespace of known content, and queue pairs of its controller on a GPU."""

    gpu: Gpu
    queues: GpuQueues
    job: Job
    tallies: list[Any]

    def start(self, kernel: str, job: Job, *, grid: int, block: int, stream: Any = None) -> Launch:
        """Start a kernel; its tally is the next of `tallies`."""
        tally = self.gpu.allocate(40)
        self.tallies.append(tally)
        loaded = self.gpu.load("ring_test", kernel)
        shared = self.queues.memory.flags_bytes if kernel == "ring_leased" else 0
        arguments = (self.queues.view, job.pack(), tally, self.queues.errors)
        return self.queues.start(
            loaded, *arguments, grid=grid, block=block, shared_bytes=shared, stream=stream
        )

    def run(self, kernel: str, *, grid: int, block: int, timeout_s: float = 120.0, **changes: Any) -> Tally:
        """Run a kernel to its end; errors stay in the record for queues.check()."""
        self.start(kernel, replace(self.job, **changes), grid=grid, block=block).wait(timeout_s)
        return self.tally()

    def tally(self, number: int = -1) -> Tally:
        return Tally(*struct.unpack("<5Q", self.tallies[number].read()))


@dataclass
class Rings(DrivenRings):
    """They are served by a software controller that runs."""

    controller: SoftwareController

    def bytes_now(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """What the namespace of memory contains."""
        return np.frombuffer(self.controller.contents(self.job.nsid), np.uint8)


@contextmanager
def make_rings(
    gpu: Gpu,
    *,
    size: int = 8 << 20,
    file: Path | None = None,
    direct: bool = False,
    rounds: int = 16,
    lbas: int = 1,
    **shape: Any,
) -> Iterator[Rings]:
    """Fill a namespace (of memory, or `file`) with the content of SEED and put it behind queue pairs."""
    memory = QueueMemory(**shape)
    controller = SoftwareController(memory)
    block_bytes = memory.block_bytes
    if file is None:
        nsid = controller.add_memory(size, block_bytes)
        np.frombuffer(controller.contents(nsid), np.uint8)[:] = content(SEED, size)
    else:
        file.write_bytes(content(SEED, size).tobytes())
        nsid = controller.add_file(file, block_bytes, direct=direct, writable=True)
    job = Job(blocks=size // block_bytes, nsid=nsid, rounds=rounds, lbas=lbas)
    # The controller stops first: that ends every kernel that still waits for it.
    with GpuQueues(gpu, memory, controller.activity) as queues, controller:
        rings = Rings(gpu, queues, job, [], controller)
        yield rings
        for tally in rings.tallies:
            tally.close()
