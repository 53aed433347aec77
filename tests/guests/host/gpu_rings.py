"""Reads by rings that somebody else serves, by threads of a GPU: kernels of driver/kernels/ring_test.cu."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, Final

from bamquery._native import QueueMemory
from bamquery.driver.gpu.device import Gpu
from bamquery.driver.gpu.queues import GpuQueues
from bamquery.errors import NvmeError
from tests.gpu.rings import DrivenRings, Job, Mode
from tests.guests.host.reads import Reads, Refusals

KERNELS: Final = ("ring_leased", "ring_shared", "ring_mixed")
_BLOCK: Final = 64
_DEADLINE_S: Final = 20.0
_LAUNCH_S: Final = 400.0


class GpuRings:
    """A namespace of one content, and the queue pairs of its controller, which is elsewhere, on a GPU."""

    def __init__(self, gpu: Gpu, queues: QueueMemory, nsid: int, blocks: int, seed: int) -> None:
        """`blocks` is all of the namespace. GpuError: the GPU cannot have the memory."""
        self.name: Final = f"threads of an {gpu.name}"
        self._grid: Final = queues.leased_pairs
        job = Job(blocks=blocks, nsid=nsid, rounds=1, deadline_s=_DEADLINE_S, seed=seed)
        self._rings: Final = DrivenRings(gpu, GpuQueues(gpu, queues, nullcontext), job, [])

    def read(self, commands: int, sizes: tuple[int, ...]) -> Iterator[Reads]:
        """So many commands or a few more, of each kernel and size in blocks as many."""
        threads = self._grid * _BLOCK
        rounds = -(-commands // (len(sizes) * len(KERNELS) * threads))
        for kernel in KERNELS:
            for lbas in sizes:
                tally = self._rings.run(
                    kernel, grid=self._grid, block=_BLOCK, timeout_s=_LAUNCH_S, rounds=rounds, lbas=lbas
                )
                failed = tally.failed + tally.slotless + tally.unleased
                yield Reads(f"{kernel} of {lbas} blocks", tally.commands, tally.wrong, failed)
                self._rings.queues.check()

    def refusals(self) -> Refusals:
        """How what cannot be is refused, of all kernels the same."""
        job = self._rings.job
        (beyond,) = {self._status(kernel, blocks=1 << 60) for kernel in KERNELS}
        (missing,) = {self._status(kernel, nsid=job.nsid + 0x1000) for kernel in KERNELS}
        (after,) = {self._status(kernel) for kernel in KERNELS}
        (write,) = {self._status(kernel, modes=Mode.WRITES) for kernel in KERNELS}
        return Refusals(beyond, missing, after, write)

    def _status(self, kernel: str, **changes: Any) -> int:
        """Of a warp's commands, the first that failed; 0 where none did.

        ValueError: some of the reads failed, or of the writes, and some did not.
        """
        tally = self._rings.run(kernel, grid=1, block=32, **changes)
        writes = "modes" in changes  # each is followed by a read, which finds what was there before
        try:
            self._rings.queues.check()
            status = 0
        except NvmeError as error:
            status = error.sct << 8 | error.sc
        issued = tally.commands // 2 if writes else tally.commands
        if issued != 32 or tally.failed not in {0, issued}:
            raise ValueError(f"{kernel}: a warp's commands do not end alike: {tally}")
        return status

    def lost(self) -> int:
        """Commands that missed their deadline, and pairs whose controller broke the protocol."""
        pairs = self._rings.queues.statistics()
        return sum(pair.missed + pair.quarantined + pair.broken for pair in pairs)

    def close(self) -> None:
        """Give the memory back, once kernels have ended."""
        for tally in self._rings.tallies:
            tally.close()
        self._rings.queues.close()
