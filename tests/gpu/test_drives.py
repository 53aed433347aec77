"""Arrays over software controllers with blocks of different sizes, in numba's kernels, byte by byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pytest

from bamquery._native import QueueMemory
from bamquery.driver.array import Striped
from bamquery.driver.faults import Fault, Opcode
from bamquery.driver.gpu.array import GpuArray, GpuPageCache
from bamquery.driver.gpu.device import Gpu
from bamquery.driver.gpu.queues import GpuQueues
from bamquery.driver.software_controller import SoftwareController
from bamquery.errors import NvmeError
from tests.gpu.test_array_numba import double_all, gather, gather_odd_ones

cuda = pytest.importorskip("numba.cuda")

# Small grids are what is tested.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*under-utilization", "ignore:.*[Hh]ost array used in CUDA kernel"
)

PAGE = 4096
BLOCKS = [(4096,), (512, 4096), (4096, 512, 512, 4096)]
ROWS = 64
"""Pages of each drive that the address space has."""


@contextmanager
def caches(
    gpu: Gpu, blocks: Sequence[int], pages: int
) -> Iterator[tuple[list[SoftwareController], list[np.ndarray], GpuPageCache]]:
    """A cache over controllers of random bytes, each a page larger than the one before."""
    with ExitStack() as stack:
        controllers, contents, queues = [], [], []
        for number, block in enumerate(blocks):
            memory = QueueMemory(leased_pairs=0, shared_pairs=4, depth=64, slot_bytes=PAGE, block_bytes=block)
            controller = stack.enter_context(SoftwareController(memory, threads=1))
            nsid = controller.add_memory((ROWS + number) * PAGE, block)
            contents.append(np.frombuffer(controller.contents(nsid), np.uint8))
            contents[-1][:] = np.random.default_rng(number).integers(0, 256, len(contents[-1]), np.uint8)
            controllers.append(controller)
            queues.append(stack.enter_context(GpuQueues(gpu, memory, controller.activity)))
        cache = stack.enter_context(GpuPageCache(queues, controllers, pages=pages, page_bytes=PAGE))
        yield controllers, contents, cache


def striped(contents: Sequence[np.ndarray], order: Sequence[int], stripe: int) -> np.ndarray:
    """The address space, byte by byte."""
    if len(order) == 1:
        return contents[order[0]].view(np.uint64).copy()
    rows = min(map(len, contents)) // stripe
    parts = [contents[drive][row * stripe : (row + 1) * stripe] for row in range(rows) for drive in order]
    return np.concatenate(parts).view(np.uint64)


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("stripe", [PAGE, 8 * PAGE])
@pytest.mark.parametrize("shape", [(1, 31), (3, 33), (200, 256)])
def test_elements_of_all_drives(gpu: Gpu, blocks: Sequence[int], stripe: int, shape: tuple[int, int]) -> None:
    order = list(range(len(blocks)))[::-1]
    with caches(gpu, blocks, pages=32) as (controllers, contents, cache):
        wanted = striped(contents, order, stripe)
        with GpuArray(cache, Striped([(drive, 1) for drive in order], stripe), "u8", len(wanted)) as array:
            count = 2000 if shape[0] < 9 else 60_000
            places = np.random.default_rng(1).integers(0, len(wanted), count)
            out = cuda.device_array(count, np.uint64)
            with array.kernels():
                gather[shape](array, cuda.to_device(places), out)
            assert (out.copy_to_host() == wanted[places]).all()
        reads = [controller.statistics().reads for controller in controllers]
        assert all(reads)
        assert sum(reads) == cache.statistics()["misses"]


def test_divergent_lanes_and_early_exits(gpu: Gpu) -> None:
    with caches(gpu, (512, 4096, 512), pages=8) as (_, contents, cache):
        wanted = striped(contents, [1, 2, 0], PAGE)
        with GpuArray(cache, Striped([(1, 1), (2, 1), (0, 1)], PAGE), "u8", len(wanted)) as array:
            places = np.random.default_rng(2).integers(0, len(wanted), 10_000)
            out = cuda.to_device(np.full(len(places), 7, np.uint64))
            with array.kernels():
                gather_odd_ones[len(places) // 128 + 1, 128](array, cuda.to_device(places), out)
        i = np.arange(len(places))
        assert (out.copy_to_host() == np.where((i % 3 != 0) & (i % 2 == 1), wanted[places], 7)).all()


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("pages", [1, 16, 1024])
def test_writes_reach_their_drives(gpu: Gpu, blocks: Sequence[int], pages: int) -> None:
    order = list(range(len(blocks)))
    with caches(gpu, blocks, pages) as (_, contents, cache):
        before = striped(contents, order, 2 * PAGE)
        place = Striped([(drive, 1) for drive in order], 2 * PAGE)
        with GpuArray(cache, place, "u8", len(before), writable=True) as array:
            with array.kernels():
                double_all[64, 128](array)
            cache.flush()
        assert (striped(contents, order, 2 * PAGE) == 2 * before).all()


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_a_drive_that_fails_is_named_and_the_others_go_on(gpu: Gpu, broken: int) -> None:
    place = Striped([(0, 1), (1, 1), (2, 1)], PAGE)
    with (
        caches(gpu, (512, 4096, 512), pages=4 * ROWS) as (controllers, contents, cache),
        GpuArray(cache, place, "u8", 3 * ROWS * 512, writable=True) as array,
    ):
        wanted = striped(contents, [0, 1, 2], PAGE)
        lbas = PAGE // controllers[broken].memory.block_bytes
        controllers[broken].set_faults([Fault("error", first_lba=8 * lbas, blocks=1 << 20, status=0x281)])
        places = np.random.default_rng(3).integers(0, len(wanted), 20_000)
        out: Any = cuda.device_array(len(places), np.uint64)
        with pytest.raises(NvmeError, match=f"drive {broken}, namespace 1") as caught, array.kernels():
            gather[20, 128](array, cuda.to_device(places), out)
        assert (caught.value.drive, caught.value.sct, caught.value.sc) == (broken, 2, 0x81)
        lost = (places // 512 % 3 == broken) & (places // 512 // 3 >= 8)
        assert (out.copy_to_host() == np.where(lost, 0, wanted[places])).all()
        for queues in cache.queues:
            assert all(pair.quarantined == 0 and not pair.broken for pair in queues.statistics())
        controllers[broken].set_faults([Fault("error", opcode=Opcode.WRITE, status=0x280)])
        with array.kernels():
            double_all[64, 128](array)
        with pytest.raises(NvmeError, match=f"drive {broken}"):
            cache.flush()
        controllers[broken].set_faults([])
        cache.flush()
        assert (striped(contents, [0, 1, 2], PAGE) == 2 * wanted).all()
