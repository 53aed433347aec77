"""One controller of `bamquery bench block` on a GPU: its queue pairs there, and who drives them."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

from bamquery import _native
from bamquery.driver.bench.served import DriveCounts, ServedBacking
from bamquery.driver.bench.workload import Access, BlockWorkload, DriveFigures
from bamquery.driver.gpu.device import Gpu
from bamquery.driver.gpu.launch import Launch
from bamquery.driver.gpu.memory import GpuMemory
from bamquery.driver.gpu.queues import GpuQueues

KERNELS: Final = "bench_block"
_MOST_WARPS: Final = 7
"""That move blocks, of each thread block; one more sweeps completions."""
_LARGE_BLOCK: Final = 16 << 10
"""From here on, or where a drive is behind it, a warp goes on with each block that lands, and else waits for
one for each lane."""
_NAP_NS: Final = 200


@dataclass(frozen=True)
class Shape:
    """How a thread block's queue pair is shared out."""

    warps: int
    """That move blocks."""
    lanes: int
    """Of each of them, that keep a command in flight."""
    batch: int
    """Commands of a warp that end before it goes on."""

    @classmethod
    def from_workload(cls, workload: BlockWorkload) -> Shape:
        """As many warps and lanes as there are slots for."""
        slots = workload.depth - 1
        # A drive answers some commands much later than others of the same time.
        uneven = workload.backing.access is Access.DIRECT or workload.profile is not None
        if workload.block_bytes >= _LARGE_BLOCK or uneven:
            warps = min(_MOST_WARPS, slots)
            return cls(warps, min(32, slots // warps), 1)
        lanes = min(32, slots)
        return cls(min(_MOST_WARPS, slots // lanes), lanes, lanes)

    @property
    def threads(self) -> int:
        """Of a thread block."""
        return 32 * (self.warps + 1)


def job_bytes(
    workload: BlockWorkload, shape: Shape, nsid: int, clients: int, *, seconds: float, first_count: int
) -> bytes:
    """A GpuBlockJob."""
    return _native.gpu_block_job(
        pattern=workload.pattern,
        theta=workload.theta,
        blocks=workload.blocks,
        clients=clients,
        seed=workload.seed,
        first_count=first_count,
        run_seconds=seconds,
        deadline_seconds=workload.deadline_seconds,
        write_share=workload.write_share,
        block_bytes=workload.block_bytes,
        lba_bytes=workload.lba_bytes,
        nsid=nsid,
        sweep_nap_ns=_NAP_NS if workload.block_bytes >= 4096 else 0,
        verify=workload.verify,
        lanes=shape.lanes,
        batch=shape.batch,
    )


def queue_memory(share: BlockWorkload) -> _native.QueueMemory:
    """A pair to lease for each thread block."""
    return _native.QueueMemory(
        leased_pairs=share.pairs,
        shared_pairs=0,
        depth=share.depth,
        slot_bytes=share.block_bytes,
        block_bytes=share.lba_bytes,
    )


class Station:
    """One controller's queue pairs on the GPU, a thread block for each, and what they have done."""

    def __init__(self, gpu: Gpu, number: int, backing: ServedBacking, stack: ExitStack) -> None:
        workload = backing.workload
        assert isinstance(workload, BlockWorkload)
        self.workload = workload
        self.shape = Shape.from_workload(workload)
        self.clients = workload.pairs * self.shape.warps * self.shape.lanes
        self.backing = backing
        memory = backing.controller.memory
        self.queues = stack.enter_context(GpuQueues(gpu, memory, backing.controller.activity))
        self._target = stack.enter_context(
            gpu.allocate(workload.pairs * self.shape.threads * workload.block_bytes)
        )
        words = -(-workload.blocks // 32) if workload.write_share > 0 else 1
        self.written = stack.enter_context(gpu.allocate(4 * words))
        self.counts = DriveCounts(number, backing)
        self._kernel = gpu.load(KERNELS, "bench_block_rings")
        self._seconds_before = self._thread_seconds()

    def start(self, tally: GpuMemory, seconds: float, first_count: int, stream: Any) -> Launch:
        """Its thread blocks, beside those of others on other streams."""
        workload, queues = self.workload, self.queues
        job = job_bytes(
            workload, self.shape, self.backing.nsid, self.clients, seconds=seconds, first_count=first_count
        )
        return queues.start(
            self._kernel,
            queues.view,
            job,
            self._target,
            self.written if workload.write_share > 0 else None,
            tally,
            queues.errors,
            grid=workload.pairs,
            block=self.shape.threads,
            shared_bytes=queues.memory.flags_bytes,
            stream=stream,
        )

    @property
    def controller_seconds(self) -> float:
        """CPU time of its threads so far."""
        return self._thread_seconds() - self._seconds_before

    def _thread_seconds(self) -> float:
        return sum(self.backing.controller.statistics().thread_seconds)

    @property
    def doorbells(self) -> int:
        """Rings of submission queues."""
        return sum(pair.doorbells for pair in self.queues.statistics())

    def figures(self) -> DriveFigures:
        """What the drive did."""
        return replace(self.counts.figures(), doorbell_writes=self.doorbells)
