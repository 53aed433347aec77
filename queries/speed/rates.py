"""How fast this machine moves bytes: what floors are computed from, measured as a run begins."""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from bamquery.queries.speed.floors import Rates

_TURNS: Final = 5
"""Of each, the fastest of which counts."""
_HOST_BYTES: Final = 256 << 20
"""More than caches hold."""
_BUS_BYTES: Final = 256 << 20
_GPU_BYTES: Final = 1 << 30


def measure_rates(device: str, threads: int) -> Rates:
    """Of the processor's memory and, for `cuda:N`, of the GPU's bus and memory; takes a second.

    Raises:
        GpuError: the GPU cannot be used.
    """
    host = host_rate(threads)
    if not device.startswith("cuda:"):
        return Rates(host)
    from bamquery.driver.gpu.device import Gpu  # noqa: PLC0415 (needs CUDA)

    with Gpu(int(device.removeprefix("cuda:"))) as gpu:
        return Rates(host, bus_rate(gpu), gpu_rate(gpu))


def host_rate(threads: int, nbytes: int = _HOST_BYTES) -> float:
    """Bytes a second that so many threads add up."""
    values = np.ones(nbytes // 8, np.int64)
    parts = np.array_split(values, threads)
    with ThreadPoolExecutor(threads) as pool:
        return values.nbytes / _fastest(lambda: list(pool.map(np.add.reduce, parts)))


def bus_rate(gpu: Any, nbytes: int = _BUS_BYTES) -> float:
    """Bytes a second from pinned memory of this process into a GPU's."""
    memory = np.ones(nbytes + mmap.PAGESIZE, np.uint8)  # written: each page is there
    address = -(-memory.ctypes.data // mmap.PAGESIZE) * mmap.PAGESIZE
    with gpu.allocate(nbytes) as target, gpu.pin(memory, address, nbytes):
        return nbytes / _fastest_copy(gpu, "cuMemcpyHtoDAsync", target.address, address, nbytes)


def gpu_rate(gpu: Any, nbytes: int = _GPU_BYTES) -> float:
    """Bytes a second that a GPU reads and writes as it copies in its own memory: both count."""
    with gpu.allocate(nbytes) as source, gpu.allocate(nbytes) as target:
        return 2 * nbytes / _fastest_copy(gpu, "cuMemcpyDtoDAsync", target.address, source.address, nbytes)


def _fastest_copy(gpu: Any, function: str, *what: int) -> float:
    """Seconds by the GPU's clock: a host that waits looks too seldom."""
    return min(_seconds_of_copy(gpu, function, *what) for _ in range(_TURNS))


def _seconds_of_copy(gpu: Any, function: str, *what: int) -> float:
    gpu.enter()
    stream = gpu.copy_stream
    begin = gpu.events.record(stream, timed=True)
    end = None
    try:
        gpu.cuda("copy to measure rates", function, *what, stream)
        end = gpu.events.record(stream, timed=True)
        gpu.wait_for_stream(stream, "copying to measure rates")
        milliseconds = gpu.cuda("ask how long copying took", "cuEventElapsedTime", begin, end)
    finally:
        for event in (begin, end):
            if event is not None:
                gpu.events.give_back(event, timed=True)
    return max(float(milliseconds) / 1e3, 1e-9)


def _fastest(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(_TURNS):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return max(min(seconds), 1e-9)
