"""`bamquery bench array` on a GPU."""

from __future__ import annotations

import struct
from dataclasses import replace

from bamquery.driver.bench.cache import element_bytes
from bamquery.driver.bench.gpu_pages import NAP_NS, GpuPages, gpu_pages
from bamquery.driver.bench.workload import ArrayWorkload, Figures, Interrupted, Pattern, Progress
from bamquery.driver.gpu.arguments import Argument

_WARP = 32


def run_array_gpu(workload: ArrayWorkload, progress: Progress) -> list[Figures]:
    """Figures of elements read through an array; an operation is an element.

    Every element is compared: the kernel has nothing else to do with it. A scan's warps read 32 elements in a
    row each time, a gather's lanes one each.

    Raises:
        Interrupted: Ctrl-C; with the figures so far.
        BamQueryError: the GPU or the backing cannot be used.
    """
    scans = workload.operation == "scan"
    asked = replace(workload, verify=True, pattern=Pattern.SEQUENTIAL if scans else workload.pattern)
    try:
        with gpu_pages(asked, leased=True) as pages:
            return [_run(pages, asked, progress)]
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted([]) from None


def _run(pages: GpuPages, workload: ArrayWorkload, progress: Progress) -> Figures:
    gpu = pages.gpu
    shape = pages.shape(leased=True)
    size = element_bytes(workload.element)
    count = workload.extent_bytes // size
    scans = workload.operation == "scan"
    blocks = count // _WARP if scans else count
    clients = shape.lanes // _WARP if scans else shape.lanes
    rest = struct.pack("<IIII", scans, NAP_NS, size, 0)
    array = pages.array_view(size)
    job_size = len(pages.job(blocks, clients, 0, 0.0, rest))
    with gpu.allocate(len(array)) as view, gpu.allocate(job_size) as job:
        view.write(array)

        def arguments(launch: int, seconds: float) -> tuple[Argument, ...]:
            job.write(pages.job(blocks, clients, launch, seconds, rest))
            return (view, job, pages.tally)

        kernel = gpu.load("bench_array", pages.kernel_name("bench_array_leased"))
        return pages.run(
            workload.operation, kernel, arguments=arguments, shape=shape, unit_bytes=size, progress=progress
        )
