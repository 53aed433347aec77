"""`bamquery bench cache` on a GPU."""

from __future__ import annotations

import struct

from bamquery.driver.bench.gpu_pages import NAP_NS, GpuPages, gpu_pages
from bamquery.driver.bench.workload import CacheWorkload, Figures, Interrupted, Progress
from bamquery.driver.gpu.arguments import Argument

_FILL_SECONDS = 120.0


def run_cache_gpu(workload: CacheWorkload, progress: Progress) -> list[Figures]:
    """Figures of pages read through a cache in the GPU's memory; an operation is a page.

    A warm cache is read by whole warps, one page after another, through shared pairs; a cold one by lanes
    that each want a page of their own, so that a warp's misses go out together, through leased pairs.

    Raises:
        Interrupted: Ctrl-C; with the figures so far.
        BamQueryError: the GPU or the backing cannot be used.
    """
    try:
        with gpu_pages(workload, leased=not workload.warm) as pages:
            return [_run(pages, workload, progress)]
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted([]) from None


def _run(pages: GpuPages, workload: CacheWorkload, progress: Progress) -> Figures:
    gpu = pages.gpu
    shape = pages.shape(leased=not workload.warm)
    clients = shape.lanes // 32 if workload.warm else shape.lanes
    blocks = workload.extent_bytes // workload.page_bytes
    rest = struct.pack("<II", NAP_NS, workload.verify)
    array = pages.array_view(1)
    job_size = len(pages.job(blocks, clients, 0, 0.0, rest))
    with gpu.allocate(len(array)) as view, gpu.allocate(job_size) as job:
        view.write(array)

        def arguments(launch: int, seconds: float) -> tuple[Argument, ...]:
            job.write(pages.job(blocks, clients, launch, seconds, rest))
            return (view, job, pages.tally, pages.errors)

        if workload.warm:
            array_view, filled, tally, errors = arguments(0, 0.0)
            pages.run_kernel(
                gpu.load("bench_cache", "bench_cache_fill"),
                *(array_view, filled, min(blocks, pages.page_count), tally, errors),
                shape=shape,
                timeout_s=_FILL_SECONDS,
            )
        name = "bench_cache_warps" if workload.warm else "bench_cache_lanes"
        return pages.run(
            "cache",
            gpu.load("bench_cache", pages.kernel_name(name)),
            arguments=arguments,
            shape=shape,
            unit_bytes=workload.page_bytes,
            progress=progress,
        )
