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
    gpu, queues = pages.gpu, pages.queues
    shape = pages.shape(leased=not workload.warm)
    clients = shape.lanes // 32 if workload.warm else shape.lanes
    blocks = workload.extent_bytes // workload.page_bytes
    rest = struct.pack("<QIIII", pages.namespace_blocks, pages.nsid, NAP_NS, workload.verify, 0)
    job_size = len(pages.job(blocks, clients, 0, 0.0, rest))
    with gpu.allocate(len(pages.view)) as view, gpu.allocate(job_size) as job:
        view.write(pages.view)

        def arguments(launch: int, seconds: float) -> tuple[Argument, ...]:
            job.write(pages.job(blocks, clients, launch, seconds, rest))
            return (view, queues.view_memory, job, pages.tally, queues.errors)

        if workload.warm:
            cache, pool, filled, tally, errors = arguments(0, 0.0)
            queues.run(
                gpu.load("bench_cache", "bench_cache_fill"),
                *(cache, pool, filled, min(blocks, pages.page_count), tally, errors),
                grid=shape.grid,
                block=shape.threads,
                timeout_s=_FILL_SECONDS,
            )
        kernel = gpu.load("bench_cache", "bench_cache_warps" if workload.warm else "bench_cache_lanes")
        return pages.run(
            "cache",
            kernel,
            arguments=arguments,
            shape=shape,
            unit_bytes=workload.page_bytes,
            progress=progress,
        )
