"""What the benchmarks of the page cache and of arrays have in common on a GPU."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np

from bamquery import _native
from bamquery.driver.bench.measure import with_hit_ratio
from bamquery.driver.bench.served import DriveCounts, ServedBacking, serve
from bamquery.driver.bench.workload import ArrayWorkload, CacheWorkload, Figures, Interrupted, Progress
from bamquery.driver.gpu.arguments import Argument
from bamquery.driver.gpu.device import Gpu, GpuKernel
from bamquery.driver.gpu.memory import GpuMemory
from bamquery.driver.gpu.queues import GpuQueues
from bamquery.errors import NvmeError

NAP_NS: Final = 200
"""How long the warp that sweeps completions rests where there were none."""
_CACHE_ALIGNMENT: Final = 4096
_MOST_WARPS: Final = 7
"""That read, of a thread block with a leased pair; one more sweeps completions."""
_SHARED_BLOCKS: Final = 2
"""Thread blocks for each multiprocessor, where all share queue pairs."""
_SHARED_THREADS: Final = 256
_SLICE_SECONDS: Final = 0.5
"""Of one launch: how long Ctrl-C and the progress line wait."""
_GRACE_SECONDS: Final = 10.0
_TALLY: Final = np.dtype([(name, np.uint64) for name in ("done", "wrong", "failed")])


@dataclass(frozen=True)
class Shape:
    """Of a launch, and how many clients the pattern is shared out to."""

    grid: int
    threads: int
    lanes: int
    """That read."""


class GpuPages:
    """A GPU with a page cache in its memory, and queue pairs to the controllers that have the content."""

    def __init__(
        self,
        gpu: Gpu,
        queues: Sequence[GpuQueues],
        backings: Sequence[ServedBacking],
        workload: CacheWorkload | ArrayWorkload,
        stack: ExitStack,
    ) -> None:
        """An empty cache; its memory is given back with the stack."""
        self.gpu = gpu
        self.queues = queues
        self.workload = workload
        self.page_count = workload.cache_bytes // workload.page_bytes
        self._backings = backings
        sizes = {
            "page_count": self.page_count,
            "page_bytes": workload.page_bytes,
            "block_bytes": workload.lba_bytes,
        }
        memory = stack.enter_context(gpu.allocate(_native.page_cache_bytes(**sizes) + _CACHE_ALIGNMENT))
        start = -(-memory.address // _CACHE_ALIGNMENT) * _CACHE_ALIGNMENT
        self._cache, offset, self._counters_bytes = _native.page_cache_view(start, **sizes)
        self._memory = memory
        self._counters_offset = start - memory.address + offset
        self._members = [(drive, backing.nsid) for drive, backing in enumerate(backings)]
        self._pools = _on_gpu(gpu, b"".join(one.view for one in queues), stack)
        self._stripes = _on_gpu(gpu, _native.stripe_members(self._members), stack)
        self.tally = stack.enter_context(gpu.allocate(_TALLY.itemsize))

    @property
    def errors(self) -> GpuMemory:
        """The record of all drives."""
        return self.queues[0].errors

    def kernel_name(self, name: str) -> str:
        """Kernels of one drive have nothing of several in them."""
        return name if len(self.queues) == 1 else f"{name}_drives"

    def array_view(self, element_bytes: int) -> bytes:
        """A SharedArrayView of the whole extent."""
        workload = self.workload
        return _native.shared_array_view(
            cache=self._cache,
            pools=self._pools.address,
            drives=len(self.queues),
            errors=self.errors.address,
            members=self._members,
            stripes=self._stripes.address,
            stripe_bytes=workload.stripe_bytes,
            offset=0,
            space_bytes=workload.extent_bytes,
            namespace_blocks=workload.extent_bytes // workload.lba_bytes,
            count=workload.extent_bytes // element_bytes,
            element_bytes=element_bytes,
            writable=False,
            timeout=workload.deadline_seconds,
        )

    def shape(self, *, leased: bool) -> Shape:
        """One thread block for each leased pair; or as many as are resident, all with the shared pairs."""
        if not leased:
            grid = _SHARED_BLOCKS * self.gpu.multiprocessors
            return Shape(grid, _SHARED_THREADS, grid * _SHARED_THREADS)
        warps = max(1, min(_MOST_WARPS, (self.workload.depth - 1) // 32))
        return Shape(self.workload.pairs, 32 * (warps + 1), self.workload.pairs * warps * 32)

    def counters(self) -> dict[str, int]:
        """What the cache did so far."""
        return _native.page_cache_counters(self._memory.read(self._counters_bytes, self._counters_offset))

    def job(self, blocks: int, clients: int, launch: int, seconds: float, fields: bytes = b"") -> bytes:
        """How GpuCacheJob and GpuArrayJob begin; `fields` are the rest."""
        workload = self.workload
        pattern = _native.access_pattern(
            workload.pattern, blocks=blocks, clients=clients, seed=workload.seed, theta=workload.theta
        )
        # Counts of different launches are far apart, so that no client asks for the same again.
        first_count = launch << 32
        times = (int(seconds * 1e9), int(workload.deadline_seconds * 1e9))
        return pattern + struct.pack("<QQQQ", workload.seed, first_count, *times) + fields

    def run_kernel(self, kernel: GpuKernel, *arguments: Argument, shape: Shape, timeout_s: float) -> float:
        """One launch, with the controllers awake; returns its seconds. NvmeError: a command failed."""
        first, *others = self.queues
        return first.run(
            kernel,
            *arguments,
            grid=shape.grid,
            block=shape.threads,
            shared_bytes=sum(one.memory.flags_bytes for one in self.queues),
            timeout_s=timeout_s,
            others=others,
        )

    def run(
        self,
        path: str,
        kernel: GpuKernel,
        *,
        arguments: Callable[[int, float], tuple[Argument, ...]],
        shape: Shape,
        unit_bytes: int,
        progress: Progress,
    ) -> Figures:
        """Launch for as long as asked; `arguments(launch, seconds)` are the kernel's.

        Raises:
            Interrupted: Ctrl-C came first.
        """
        before = self.counters()
        drives = [DriveCounts(number, backing) for number, backing in enumerate(self._backings)]
        self.tally.clear()
        seconds = cpu_seconds = 0.0
        notes: list[str] = []

        def figures() -> Figures:
            counted = self.tally.read_array(_TALLY)[0]
            done, wrong, failed = (int(counted[name]) for name in ("done", "wrong", "failed"))
            if wrong:
                notes.append(f"{wrong} values were wrong")
            after = self.counters()
            return Figures(
                path=path,
                operations=done,
                bytes=done * unit_bytes,
                seconds=seconds,
                cpu_seconds=cpu_seconds,
                errors=failed,
                verified=wrong == 0 if self.workload.verify and done else None,
                notes=tuple(notes),
                counters=with_hit_ratio({name: after[name] - before[name] for name in after}),
                drives=tuple(drive.figures() for drive in drives) if len(drives) > 1 else (),
            )

        launch = 0
        try:
            while seconds < self.workload.seconds:
                launch += 1
                asked = min(_SLICE_SECONDS, self.workload.seconds - seconds)
                start = time.process_time()
                try:
                    seconds += self.run_kernel(
                        kernel,
                        *arguments(launch, asked),
                        shape=shape,
                        timeout_s=asked + 2 * self.workload.deadline_seconds + _GRACE_SECONDS,
                    )
                except NvmeError as error:
                    notes.append(f"first error: {error}")
                    break
                cpu_seconds += time.process_time() - start
                done = int(self.tally.read_array(_TALLY)[0]["done"])
                progress(path, seconds, done, done * unit_bytes)
        except KeyboardInterrupt:
            notes.append("stopped by Ctrl-C")
            raise Interrupted([figures()]) from None
        return figures()


@contextmanager
def gpu_pages(workload: CacheWorkload | ArrayWorkload, *, leased: bool) -> Iterator[GpuPages]:
    """An empty cache before the workload's content, with pairs to lease or shared ones.

    Of several controllers each has a pair for each thread block.

    Raises:
        BamQueryError: the GPU or the backing cannot be used.
    """
    with ExitStack() as stack:
        gpu = stack.enter_context(Gpu(int(workload.device.partition(":")[2])))
        backings = []
        for share in workload.shares():
            memory = _native.QueueMemory(
                leased_pairs=workload.pairs if leased else 0,
                shared_pairs=0 if leased else workload.pairs,
                depth=workload.depth,
                slot_bytes=workload.page_bytes,
                block_bytes=workload.lba_bytes,
            )
            backings.append(stack.enter_context(serve(share, memory, writable=False)))
        queues = [
            stack.enter_context(GpuQueues(gpu, one.controller.memory, one.controller.activity))
            for one in backings
        ]
        yield GpuPages(gpu, queues, backings, workload, stack)


def _on_gpu(gpu: Gpu, data: bytes, stack: ExitStack) -> GpuMemory:
    memory = stack.enter_context(gpu.allocate(len(data)))
    memory.write(data)
    return memory
