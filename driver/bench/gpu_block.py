"""`bamquery bench block` on a GPU: the paths one after another, over the same content."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from bamquery.driver.bench.block import run_block_cpu
from bamquery.driver.bench.gpu_backing import pin
from bamquery.driver.bench.gpu_station import KERNELS, Shape, Station, job_bytes, queue_memory
from bamquery.driver.bench.served import ServedBacking, serve
from bamquery.driver.bench.workload import (
    SECTOR_BYTES,
    BlockWorkload,
    Figures,
    Interrupted,
    PathName,
    Progress,
)
from bamquery.driver.gpu.device import Gpu
from bamquery.driver.gpu.launch import Launch
from bamquery.driver.gpu.memory import GpuMemory
from bamquery.errors import NvmeError

_SLICE_SECONDS = 0.5
"""Of one launch: how long Ctrl-C and the progress line wait."""
_WARMUP_SECONDS = 0.05
_GRACE_SECONDS = 10.0
_TALLY = np.dtype([(name, np.uint64) for name in ("operations", "wrong", "failed", "counts")])
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
        with Gpu(int(workload.device.partition(":")[2])) as gpu, ExitStack() as stack:
            # Written blocks are not read again soon: past the caches they leave room for landing buffers.
            backings = [
                stack.enter_context(
                    serve(share, queue_memory(share), writable=writes, streaming_stores=writes)
                )
                for share in workload.shares()
            ]
            backing = backings[0]
            paths = {
                PathName.RINGS: lambda: _rings(gpu, backings, workload, progress),
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


def _rings(gpu: Gpu, backings: list[ServedBacking], workload: BlockWorkload, progress: Progress) -> Figures:
    run = _Run(gpu, workload, PathName.RINGS, progress)
    with ExitStack() as stack:
        stack.enter_context(run.tally)
        stations = [Station(gpu, number, one, stack) for number, one in enumerate(backings)]
        several = len(stations) > 1
        streams = [gpu.new_stream() for _ in stations] if several else [None]

        def launch(seconds: float, first_count: int) -> float:
            started = [
                station.start(run.tally, seconds, first_count, stream)
                for station, stream in zip(stations, streams, strict=True)
            ]
            timeout = seconds + 2 * workload.deadline_seconds + _GRACE_SECONDS
            elapsed = max([one.wait(timeout) for one in started])
            for number, station in enumerate(stations):
                try:
                    station.queues.check()
                except NvmeError as error:
                    run.notes.append(f"first error{f' of drive {number}' if several else ''}: {error}")
            return elapsed

        figures = run.go_on(launch)
        counters = {
            "controller_cores": sum(station.controller_seconds for station in stations) / run.seconds,
            "commands_in_flight": float(sum(station.clients for station in stations)),
            "doorbells": float(sum(station.doorbells for station in stations)),
        }
        drives = tuple(station.figures() for station in stations) if several else ()
        wrong = 0
        if workload.write_share > 0:
            wrong = sum(
                _wrong_after_writing(gpu, station.backing, station.workload, station.written)
                for station in stations
            )
    figures = replace(figures, counters=counters, drives=drives)
    if wrong:
        notes = (*figures.notes, f"{wrong} pieces of 16 bytes were wrong when read back after the run")
        return replace(figures, verified=False, notes=notes)
    return figures


def _wrong_after_writing(
    gpu: Gpu, backing: ServedBacking, workload: BlockWorkload, written: GpuMemory
) -> int:
    """Compare the whole backing; a block of memory that was written has other content then."""
    with pin(backing, gpu) as pinned, gpu.allocate(_TALLY.itemsize) as tally:
        launch = _check(
            gpu, workload, tally, address=pinned.address, size=workload.extent_bytes, written=written
        )
        launch.wait(_GRACE_SECONDS + workload.extent_bytes / 1e9)
        found = _count_wrong(tally)
    backing.fill()
    return found


def _zero_copy(gpu: Gpu, backing: ServedBacking, workload: BlockWorkload, progress: Progress) -> Figures:
    kernel = gpu.load(KERNELS, "bench_block_zero_copy")
    run = _Run(gpu, workload, PathName.ZERO_COPY, progress)
    blocks, threads = _ZERO_COPY_SHAPE
    # As many threads as can land their blocks in a quarter of a GB.
    grid = max(1, min(blocks * gpu.multiprocessors, (256 << 20) // (threads * workload.block_bytes)))
    clients = grid * threads
    reads = replace(workload, write_share=0.0)
    shape = Shape(threads // 32, 32, 32)
    with (
        pin(backing, gpu) as pinned,
        gpu.allocate(clients * workload.block_bytes) as target,
        run.tally,
    ):

        def launch(seconds: float, first_count: int) -> float:
            job = job_bytes(reads, shape, backing.nsid, clients, seconds=seconds, first_count=first_count)
            arguments = (np.uint64(pinned.address), job, target, run.tally)
            started = gpu.launch(kernel, *arguments, grid=grid, block=threads)
            return started.wait(seconds + _GRACE_SECONDS)

        if workload.write_share > 0:
            run.notes.append("reads only")
        return run.go_on(launch)


def _copy_engine(gpu: Gpu, backing: ServedBacking, workload: BlockWorkload, progress: Progress) -> Figures:
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
        pin(backing, gpu) as pinned,
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
    kernel = gpu.load(KERNELS, "bench_block_check")
    return gpu.launch(kernel, *arguments, grid=8 * gpu.multiprocessors, block=256, stream=stream)


def _count_wrong(tally: GpuMemory) -> int:
    return int(tally.read_array(_TALLY)[0]["wrong"])
