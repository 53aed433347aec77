"""Arrays in kernels that numba compiles, in any launch shape."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from bamquery._native import QueueMemory
from bamquery.driver.faults import Fault
from bamquery.driver.gpu.array import GpuArray, GpuPageCache
from bamquery.driver.gpu.device import Gpu
from bamquery.driver.gpu.queues import GpuQueues
from bamquery.driver.software_controller import SoftwareController
from bamquery.errors import NvmeError

cuda = pytest.importorskip("numba.cuda")

# Small grids are what is tested.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*under-utilization", "ignore:.*[Hh]ost array used in CUDA kernel"
)

BYTES = 1 << 20


@contextmanager
def arrays(
    gpu: Gpu, dtype: str, pages: int = 64, **options: Any
) -> Iterator[tuple[SoftwareController, np.ndarray, GpuArray]]:
    memory = QueueMemory(leased_pairs=0, shared_pairs=8, depth=64, slot_bytes=4096)
    with (
        SoftwareController(memory) as controller,
        GpuQueues(gpu, memory, controller.activity) as queues,
        GpuPageCache(queues, controller, pages=pages) as cache,
    ):
        nsid = controller.add_memory(BYTES)
        contents = np.frombuffer(controller.contents(nsid), dtype)
        contents[:] = np.arange(len(contents)).astype(dtype)
        with GpuArray(cache, nsid, dtype, len(contents), **options) as array:
            yield controller, contents, array


@cuda.jit
def gather(array: Any, indices: Any, out: Any) -> None:
    for i in range(cuda.grid(1), len(indices), cuda.gridsize(1)):
        out[i] = array[indices[i]]


@cuda.jit
def gather_odd_ones(array: Any, indices: Any, out: Any) -> None:
    i = cuda.grid(1)
    if i >= len(indices) or i % 3 == 0:
        return
    if i % 2 == 1:
        out[i] = array[indices[i]]


@cuda.jit
def double_all(array: Any) -> None:
    for i in range(cuda.grid(1), len(array), cuda.gridsize(1)):
        array[i] = array[i] + array[i]


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "f4", "u8", "f8"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 31), (3, 33), (200, 256)])
def test_gather_in_any_shape(gpu: Gpu, dtype: str, shape: tuple[int, int]) -> None:
    with arrays(gpu, dtype) as (_, contents, array):
        indices = np.random.default_rng(1).integers(0, len(contents), 2000 if shape[0] < 9 else 60_000)
        out = cuda.device_array(len(indices), dtype)
        with array.kernels():
            gather[shape](array, cuda.to_device(indices), out)
        assert (out.copy_to_host() == contents[indices]).all()


def test_divergent_lanes_and_early_exits(gpu: Gpu) -> None:
    with arrays(gpu, "f8", pages=8) as (_, contents, array):
        indices = np.random.default_rng(2).integers(0, len(contents), 10_000)
        out = cuda.to_device(np.full(len(indices), -1.0))
        with array.kernels():
            gather_odd_ones[len(indices) // 128 + 1, 128](array, cuda.to_device(indices), out)
        i = np.arange(len(indices))
        wanted = np.where((i % 3 != 0) & (i % 2 == 1), contents[indices], -1.0)
        assert (out.copy_to_host() == wanted).all()


@pytest.mark.parametrize("pages", [1, 16, 1024])
def test_writes_come_back(gpu: Gpu, pages: int) -> None:
    with arrays(gpu, "i8", pages=pages, writable=True) as (_, contents, array):
        model = contents.copy()
        with array.kernels():
            double_all[64, 128](array)
        array.cache.flush()
        assert (contents == 2 * model).all()
        assert array.cache.statistics()["write_backs"] >= BYTES // 4096


def test_failures_are_raised(gpu: Gpu) -> None:
    with arrays(gpu, "f8") as (controller, contents, array):
        out = cuda.device_array(2, "f8")
        with pytest.raises(NvmeError), array.kernels():
            gather[1, 32](array, cuda.to_device(np.array([0, len(contents)])), out)
        assert out.copy_to_host().tolist() == [contents[0], 0]
        controller.set_faults([Fault("error", first_lba=800, blocks=8, status=0x281)])
        with pytest.raises(NvmeError) as caught, array.kernels():
            gather[1, 32](array, cuda.to_device(np.array([0, 800 * 64])), out)
        assert (caught.value.sct, caught.value.sc, caught.value.lba) == (2, 0x81, 800)
