"""`bamquery bench block` on a GPU: the paths one after another, over the same content."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bamquery import _native
from bamquery.driver.bench.block import run_block_cpu
from bamquery.driver.bench.gpu_backing import GpuBacking, gpu_backing
from bamquery.driver.bench.workload import (
    SECTOR_BYTES,
    Access,
    BlockWorkload,
    Figures,
    Interrupted,
    PathName,
    Progress,
)
from bamquery.driver.gpu.device import Gpu
from bamquery.driver.gpu.launch import Launch
from bamquery.driver.gpu.memory import GpuMemory
from bamquery.driver.gpu.queues import GpuQueues
from bamquery.errors import NvmeError

_KERNELS = "bench_block"
_SLICE_SECONDS = 0.5
"""Of one launch: how long Ctrl-C and the progress line wait."""
_WARMUP_SECONDS = 0.05
_GRACE_SECONDS = 10.0
_TALLY = np.dtype([(name, np.uint64) for name in ("operations", "wrong", "failed", "counts")])
_MOST_WARPS = 7
"""That move blocks, of each thread block; one more sweeps completions."""
_LARGE_BLOCK = 16 << 10
"""From here on, or where a drive is behind it, a warp goes on with each block that lands, and else waits for
one for each lane."""
_NAP_NS = 200
_ZERO_COPY_SHAPE = (6, 256)
"""Thread blocks for each multiprocessor, and threads of each."""
_COPY_BYTES = 64 << 20
"""The copy engine's pieces: it is started by the host, so small ones would measure the host."""


def run_block_gpu(workload: BlockWorkload, progress: Progress) -> list[Figures]:
    """Figures of each of the workload's paths, in order.

    Raises:
        Interrupted: Ctrl-C; with the figures so far.
        BamQueryError: the GPU or the backing cannot be used.
    """
    figures: list[Figures] = []
    writes = workload.write_share > 0
    host_paths = [path for path in workload.paths if path in (PathName.IO_URING, PathName.MAPPED)]
    try:
        with Gpu(int(workload.device.partition(":")[2])) as gpu:
            memory = _native.QueueMemory(
                leased_pairs=workload.pairs,
                shared_pairs=0,
                depth=workload.depth,
                slot_bytes=workload.block_bytes,
                block_bytes=workload.lba_bytes,
            )
            # Written blocks are not read again soon: past the caches they leave room for landing buffers.
            with gpu_backing(workload, memory, writable=writes, streaming_stores=writes) as backing:
                paths = {
                    PathName.RINGS: lambda: _rings(gpu, memory, backing, workload, progress),
                    PathName.ZERO_COPY: lambda: _zero_copy(gpu, backing, workload, progress),
                    PathName.COPY_ENGINE: lambda: _copy_engine(gpu, backing, workload, progress),
                }
                figures += [paths[path]() for path in workload.paths if path not in host_paths]
        if host_paths:
            figures += run_block_cpu(replace(workload, device="cpu", paths=tuple(host_paths)), progress)
    except Interrupted as interrupted:
        raise Interrupted([*figures, *interrupted.figures]) from None
    except KeyboardInterrupt:
        raise Interrupted(figures) from None
    return figures


@dataclass(frozen=True)
class _Shape:
    """How a thread block's queue pair is shared out."""

    warps: int
    """That move blocks."""
    lanes: int
    """Of each of them, that keep a command in flight."""
    batch: int
    """Commands of a warp that end before it goes on."""

    @classmethod
    def from_workload(cls, workload: BlockWorkload) -> _Shape:
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
        return 32 * (self.warps + 1)


class _Run:
    """Launches until the time is over, and what they counted."""

    def __init__(self, gpu: Gpu, workload: BlockWorkload, path: PathName, progress: Progress) -> None:
        self.workload = workload
        self.path = path
        self.tally = gpu.allocate(_TALLY.itemsize)
        self.seconds = 0.0
        self.notes: list[str] = []
        self._progress = progress
        self._cpu_seconds = 0.0
        self._first_count = 0

    def go_on(self, launch: Callable[[float, int], float]) -> Figures:
        """Call `launch(seconds, first count)`, which returns the GPU's seconds, for as long as asked.

        Raises:
            Interrupted: Ctrl-C came first.
        """
        launch(_WARMUP_SECONDS, 0)
        self._first_count = int(self._read_tally()["counts"])
        self.tally.clear()
        try:
            while self.seconds < self.workload.seconds:
                left = self.workload.seconds - self.seconds
                before = time.process_time()
                self.seconds += launch(min(_SLICE_SECONDS, left), self._first_count)
                self._cpu_seconds += time.process_time() - before
                counted = self._read_tally()
                self._first_count = int(counted["counts"])
                operations = int(counted["operations"])
                self._progress(self.path, self.seconds, operations, operations * self.workload.block_bytes)
                if int(counted["failed"]):
                    break
        except KeyboardInterrupt:
            self.notes.append("stopped by Ctrl-C")
            raise Interrupted([self.figures()]) from None
        return self.figures()

    def figures(self) -> Figures:
        """What was counted so far."""
        counted = self._read_tally()
        operations = int(counted["operations"])
        wrong = int(counted["wrong"])
        if wrong:
            self.notes.append(f"{wrong} pieces of 16 bytes were wrong")
        return Figures(
            path=self.path,
            operations=operations,
            bytes=operations * self.workload.block_bytes,
            seconds=self.seconds,
            cpu_seconds=self._cpu_seconds,
            errors=int(counted["failed"]),
            verified=wrong == 0 if self.workload.verify and operations else None,
            notes=tuple(self.notes),
        )

    def _read_tally(self) -> np.ndarray[tuple[()], np.dtype[np.void]]:
        found: np.ndarray[tuple[()], np.dtype[np.void]] = self.tally.read_array(_TALLY)[0]
        return found


def _job(
    workload: BlockWorkload, shape: _Shape, nsid: int, clients: int, *, seconds: float, first_count: int
) -> bytes:
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


def _rings(
    gpu: Gpu, memory: _native.QueueMemory, backing: GpuBacking, workload: BlockWorkload, progress: Progress
) -> Figures:
    shape = _Shape.from_workload(workload)
    kernel = gpu.load(_KERNELS, "bench_block_rings")
    run = _Run(gpu, workload, PathName.RINGS, progress)
    clients = workload.pairs * shape.warps * shape.lanes
    words = -(-workload.blocks // 32) if workload.write_share > 0 else 1
    with (
        GpuQueues(gpu, memory, backing.controller.activity) as queues,
        gpu.allocate(workload.pairs * shape.threads * workload.block_bytes) as target,
        gpu.allocate(4 * words) as written,
        run.tally,
    ):

        def launch(seconds: float, first_count: int) -> float:
            job = _job(workload, shape, backing.nsid, clients, seconds=seconds, first_count=first_count)
            started = queues.start(
                kernel,
                queues.view,
                job,
                target,
                written if workload.write_share > 0 else None,
                run.tally,
                queues.errors,
                grid=workload.pairs,
                block=shape.threads,
                shared_bytes=memory.flags_bytes,
            )
            elapsed = started.wait(seconds + 2 * workload.deadline_seconds + _GRACE_SECONDS)
            try:
                queues.check()
            except NvmeError as error:
                run.notes.append(f"first error: {error}")
            return elapsed

        before = backing.controller.statistics()
        figures = run.go_on(launch)
        after = backing.controller.statistics()
        counters = {
            "controller_cores": (sum(after.thread_seconds) - sum(before.thread_seconds)) / run.seconds,
            "commands_in_flight": float(clients),
            "doorbells": float(sum(pair.doorbells for pair in queues.statistics())),
        }
        wrong = _wrong_after_writing(gpu, backing, workload, written) if workload.write_share > 0 else 0
    if wrong:
        notes = (*figures.notes, f"{wrong} pieces of 16 bytes were wrong when read back after the run")
        return replace(figures, counters=counters, verified=False, notes=notes)
    return replace(figures, counters=counters)


def _wrong_after_writing(gpu: Gpu, backing: GpuBacking, workload: BlockWorkload, written: GpuMemory) -> int:
    """Compare the whole backing; a block of memory that was written has other content then."""
    with backing.pin(gpu) as pinned, gpu.allocate(_TALLY.itemsize) as tally:
        launch = _check(
            gpu, workload, tally, address=pinned.address, size=workload.extent_bytes, written=written
        )
        launch.wait(_GRACE_SECONDS + workload.extent_bytes / 1e9)
        found = _count_wrong(tally)
    backing.fill()
    return found


def _zero_copy(gpu: Gpu, backing: GpuBacking, workload: BlockWorkload, progress: Progress) -> Figures:
    kernel = gpu.load(_KERNELS, "bench_block_zero_copy")
    run = _Run(gpu, workload, PathName.ZERO_COPY, progress)
    blocks, threads = _ZERO_COPY_SHAPE
    # As many threads as can land their blocks in a quarter of a GB.
    grid = max(1, min(blocks * gpu.multiprocessors, (256 << 20) // (threads * workload.block_bytes)))
    clients = grid * threads
    reads = replace(workload, write_share=0.0)
    shape = _Shape(threads // 32, 32, 32)
    with (
        backing.pin(gpu) as pinned,
        gpu.allocate(clients * workload.block_bytes) as target,
        run.tally,
    ):

        def launch(seconds: float, first_count: int) -> float:
            job = _job(reads, shape, backing.nsid, clients, seconds=seconds, first_count=first_count)
            arguments = (np.uint64(pinned.address), job, target, run.tally)
            started = gpu.launch(kernel, *arguments, grid=grid, block=threads)
            return started.wait(seconds + _GRACE_SECONDS)

        if workload.write_share > 0:
            run.notes.append("reads only")
        return run.go_on(launch)


def _copy_engine(gpu: Gpu, backing: GpuBacking, workload: BlockWorkload, progress: Progress) -> Figures:
    """The whole extent from front to back, over and over; each piece is compared while the next is copied."""
    piece = min(_COPY_BYTES, workload.extent_bytes)
    pieces = workload.extent_bytes // piece
    notes = [f"sequential, pieces of {piece >> 20} MiB"]
    done = 0
    cpu_start = time.process_time()
    start = time.perf_counter()

    def figures(wrong: int) -> Figures:
        return Figures(
            path=PathName.COPY_ENGINE,
            operations=done,
            bytes=done * piece,
            seconds=time.perf_counter() - start,
            cpu_seconds=time.process_time() - cpu_start,
            verified=wrong == 0 if workload.verify and done else None,
            notes=tuple(notes),
        )

    with (
        backing.pin(gpu) as pinned,
        gpu.allocate(piece) as first,
        gpu.allocate(piece) as second,
        gpu.allocate(_TALLY.itemsize) as tally,
    ):
        # A piece is compared on its own stream, so the copy engine goes on with the other one's.
        sides = [(target, gpu.new_stream()) for target in (first, second)]
        checks: list[Launch | None] = [None, None]
        cpu_start = time.process_time()
        start = time.perf_counter()
        try:
            while (now := time.perf_counter() - start) < workload.seconds:
                place = done % pieces * piece
                target, stream = sides[done % 2]
                earlier = checks[done % 2]
                if earlier is not None:
                    earlier.wait(_GRACE_SECONDS)
                source = pinned.address + place
                gpu.cuda("copy", "cuMemcpyHtoDAsync", target.address, source, piece, stream)
                checks[done % 2] = _check(
                    gpu, workload, tally, address=target.address, size=piece, offset=place, stream=stream
                )
                done += 1
                progress(PathName.COPY_ENGINE, now, done, done * piece)
            gpu.settle(_GRACE_SECONDS)
        except KeyboardInterrupt:
            gpu.settle(_GRACE_SECONDS)
            notes.append("stopped by Ctrl-C")
            raise Interrupted([figures(_count_wrong(tally))]) from None
        measured = figures(0)
        return replace(measured, verified=_count_wrong(tally) == 0 if measured.verified is not None else None)


def _check(
    gpu: Gpu,
    workload: BlockWorkload,
    tally: GpuMemory,
    *,
    address: int,
    size: int,
    offset: int = 0,
    written: GpuMemory | None = None,
    stream: Any = None,
) -> Launch:
    """Start to compare `size` bytes at `address` with what the extent has at `offset`."""
    arguments = (
        np.uint64(address),
        size // SECTOR_BYTES,
        offset // SECTOR_BYTES,
        workload.seed,
        written,
        workload.block_bytes // SECTOR_BYTES,
        tally,
    )
    kernel = gpu.load(_KERNELS, "bench_block_check")
    return gpu.launch(kernel, *arguments, grid=8 * gpu.multiprocessors, block=256, stream=stream)


def _count_wrong(tally: GpuMemory) -> int:
    return int(tally.read_array(_TALLY)[0]["wrong"])
