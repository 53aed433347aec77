"""What `bamquery bench` runs on a GPU, small: page cache, arrays and blocks, every byte compared."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from bamquery.driver.bench import gpu_block, gpu_pages
from bamquery.driver.bench.gpu_array import run_array_gpu
from bamquery.driver.bench.gpu_block import run_block_gpu
from bamquery.driver.bench.gpu_cache import run_cache_gpu
from bamquery.driver.bench.workload import (
    Access,
    ArrayWorkload,
    Backing,
    BlockWorkload,
    CacheWorkload,
    Figures,
    PathName,
    Pattern,
)
from bamquery.driver.gpu.device import Gpu

SECONDS = 0.2
GPU = "cuda:0"


@pytest.fixture(autouse=True)
def kernels_for_the_tool(
    gpu: object, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The benchmarks open the GPU themselves, so `--racecheck` has to reach them there."""
    if request.config.getoption("--racecheck", False):
        for module in (gpu_block, gpu_pages):
            monkeypatch.setattr(module, "Gpu", partial(Gpu, defines=("BAMQUERY_RACECHECK",)))


def hear(_path: str, _seconds: float, _operations: int, _moved: int) -> None:
    pass


def check(figures: list[Figures]) -> None:
    for one in figures:
        assert one.operations > 0, one
        assert one.errors == 0, one
        assert one.verified, one


@pytest.mark.parametrize("write_share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(
    ("block_bytes", "depth"), [(512, 2), (512, 256), (4096, 64), (65536, 8), (131072, 4)]
)
def test_blocks_by_every_path(block_bytes: int, depth: int, write_share: float) -> None:
    paths = (PathName.RINGS, PathName.ZERO_COPY, PathName.COPY_ENGINE)
    workload = BlockWorkload(
        device=GPU,
        seconds=SECONDS,
        pairs=5,
        depth=depth,
        controller_threads=2,
        extent_bytes=64 << 20,
        block_bytes=block_bytes,
        write_share=write_share,
        paths=paths if write_share == 0 else paths[:1],
    )
    check(run_block_gpu(workload, hear))


@pytest.mark.parametrize("access", [Access.MAPPED, Access.DIRECT])
@pytest.mark.parametrize("write_share", [0.0, 0.5])
def test_blocks_of_a_file(access: Access, write_share: float, tmp_path: Path) -> None:
    workload = BlockWorkload(
        device=GPU,
        seconds=SECONDS,
        pairs=3,
        depth=32,
        controller_threads=2,
        backing=Backing(tmp_path / "blocks", access),
        extent_bytes=16 << 20,
        lba_bytes=4096,
        block_bytes=16384,
        write_share=write_share,
    )
    check(run_block_gpu(workload, hear))


CACHE = CacheWorkload(
    device=GPU, seconds=SECONDS, pairs=9, depth=256, controller_threads=2, extent_bytes=64 << 20
)


@pytest.mark.parametrize("pattern", list(Pattern))
@pytest.mark.parametrize("page_bytes", [512, 4096])
@pytest.mark.parametrize("page_count", [2300, 16384])
def test_pages_that_come_and_go(page_count: int, page_bytes: int, pattern: Pattern) -> None:
    # Each of 2,016 lanes holds a page, so in the smaller cache slots change hands all the time.
    cache_bytes = page_count * page_bytes
    workload = replace(CACHE, page_bytes=page_bytes, cache_bytes=cache_bytes, pattern=pattern)
    check(run_cache_gpu(workload, hear))


def test_pages_that_are_there() -> None:
    check(run_cache_gpu(replace(CACHE, warm=True, cache_bytes=64 << 20), hear))


@pytest.mark.parametrize("operation", ["gather", "scan"])
@pytest.mark.parametrize("element", ["int8", "uint16", "float32", "float64", "int64"])
def test_elements(element: str, operation: str) -> None:
    workload = ArrayWorkload(
        device=GPU,
        seconds=SECONDS,
        pairs=9,
        depth=256,
        controller_threads=2,
        extent_bytes=32 << 20,
        cache_bytes=8 << 20,
        element=element,
        operation=operation,
    )
    check(run_array_gpu(workload, hear))


@pytest.mark.parametrize("controllers", [2, 4])
@pytest.mark.parametrize("lba_bytes", [512, 4096])
def test_several_controllers(controllers: int, lba_bytes: int) -> None:
    drives = {"controllers": controllers, "controller_threads": 4, "lba_bytes": lba_bytes}
    cache = replace(CACHE, **drives, cache_bytes=8 << 20, stripe_bytes=1 << 14)
    array = ArrayWorkload(
        device=GPU, seconds=SECONDS, pairs=9, depth=256, extent_bytes=64 << 20, cache_bytes=16 << 20, **drives
    )
    blocks = BlockWorkload(
        device=GPU, seconds=SECONDS, pairs=8, depth=64, extent_bytes=64 << 20, write_share=0.3, **drives
    )
    found = [
        *run_cache_gpu(cache, hear),
        *run_cache_gpu(replace(cache, warm=True, cache_bytes=64 << 20), hear),
        *run_array_gpu(array, hear),
        *run_array_gpu(replace(array, operation="scan"), hear),
        *run_block_gpu(blocks, hear),
    ]
    check(found)
    for one in found:
        assert len(one.drives) == controllers
        assert not any(drive.errors for drive in one.drives)
    for one in (found[0], found[2], found[4]):
        assert all(drive.commands for drive in one.drives)
