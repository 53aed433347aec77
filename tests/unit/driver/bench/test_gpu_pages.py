"""Cache and array on a GPU, as far as the host goes: what kernels are given, what their counts become."""

import ctypes
import struct
from dataclasses import replace
from typing import NamedTuple

import pytest

from bamquery import _native
from bamquery.driver.bench.gpu_array import run_array_gpu
from bamquery.driver.bench.gpu_cache import run_cache_gpu
from bamquery.driver.bench.workload import ArrayWorkload, CacheWorkload, Interrupted, Pattern
from bamquery.driver.compile.compiler import CompiledKernel
from bamquery.driver.gpu import device as gpu_module
from bamquery.errors import BamQueryError
from tests.unit.driver.bench.test_block import quiet
from tests.unit.driver.fake_cuda import FakeCuda

PAGES = CacheWorkload(
    device="cuda:0",
    extent_bytes=1 << 20,
    cache_bytes=1 << 18,
    seconds=3.0,  # the fake's clock says 1.5 s a launch
    pairs=2,
    depth=64,
    page_bytes=512,
)
ELEMENTS = ArrayWorkload(
    device="cuda:0", extent_bytes=1 << 20, cache_bytes=1 << 18, seconds=1.0, pairs=2, depth=256
)
PATTERN_BYTES = 96


class Job(NamedTuple):
    """What follows the pattern in GpuCacheJob and GpuArrayJob."""

    seed: int
    first_count: int
    run_ns: int
    deadline_ns: int


class Kernel:
    """Notes its jobs, and adds to the tally."""

    def __init__(self, job: int, tally: int, wrong: int = 0) -> None:
        self.jobs: list[Job] = []
        self.patterns: list[bytes] = []
        self.rests: list[bytes] = []
        self._job, self._tally, self._wrong = job, tally, wrong

    def __call__(self, arguments: list[bytes]) -> None:
        job = int.from_bytes(arguments[self._job], "little")
        self.patterns.append(ctypes.string_at(job, PATTERN_BYTES))
        self.jobs.append(Job(*struct.unpack("<QQQQ", ctypes.string_at(job + PATTERN_BYTES, 32))))
        self.rests.append(ctypes.string_at(job + PATTERN_BYTES + 32, 8))
        tally = (ctypes.c_uint64 * 3).from_address(int.from_bytes(arguments[self._tally], "little"))
        tally[0] += 1000
        tally[1] += self._wrong


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    fake = FakeCuda()
    fake.install(monkeypatch)
    monkeypatch.setattr(gpu_module, "stored_kernel", lambda *_: CompiledKernel(b"", "", cached=True))
    return fake


def test_a_cold_cache(cuda: FakeCuda) -> None:
    cuda.parameters = [8] * 4
    cuda.kernel = kernel = Kernel(job=1, tally=2)
    (figures,) = run_cache_gpu(PAGES, quiet)
    assert (figures.operations, figures.bytes) == (2000, 2000 * 512)
    assert figures.seconds == 3.0
    assert figures.verified is True
    # Warps of 32 lanes as there are slots for, one more warp sweeps; two thread blocks.
    wanted = _native.access_pattern("random", blocks=2048, clients=2 * 32, seed=1, theta=0.99)
    assert kernel.patterns == [wanted, wanted]
    assert [job.first_count for job in kernel.jobs] == [1 << 32, 2 << 32]
    assert kernel.jobs[0].run_ns == 500_000_000
    assert kernel.jobs[0].deadline_ns == 10_000_000_000
    _, verify = struct.unpack("<II", kernel.rests[0][:8])
    assert verify == 1
    assert cuda.memory == {}


def test_wrong_pages_are_told(cuda: FakeCuda) -> None:
    cuda.parameters = [8] * 4
    cuda.kernel = Kernel(job=1, tally=2, wrong=1)
    (figures,) = run_cache_gpu(PAGES, quiet)
    assert figures.verified is False
    assert figures.notes == ("2 values were wrong",)
    (figures,) = run_cache_gpu(replace(PAGES, verify=False), quiet)
    assert figures.verified is None


@pytest.mark.parametrize(("operation", "pattern"), [("gather", "random"), ("scan", "sequential")])
def test_an_array(cuda: FakeCuda, operation: str, pattern: str) -> None:
    cuda.parameters = [8] * 3
    cuda.kernel = kernel = Kernel(job=1, tally=2)
    (figures,) = run_array_gpu(replace(ELEMENTS, operation=operation, element="float32"), quiet)
    assert figures.path == operation
    assert figures.bytes == figures.operations * 4
    lanes, elements = 2 * 7 * 32, (1 << 20) // 4
    blocks, clients = (elements // 32, lanes // 32) if operation == "scan" else (elements, lanes)
    wanted = _native.access_pattern(pattern, blocks=blocks, clients=clients, seed=1, theta=0.99)
    assert kernel.patterns[0] == wanted
    scans, _ = struct.unpack("<II", kernel.rests[0])
    assert scans == (operation == "scan")


def test_ctrl_c(cuda: FakeCuda) -> None:
    def interrupt(path: str, seconds: float, operations: int, moved: int) -> None:
        raise KeyboardInterrupt

    cuda.parameters = [8] * 4
    cuda.kernel = Kernel(job=1, tally=2)
    with pytest.raises(Interrupted) as raised:
        run_cache_gpu(replace(PAGES, pattern=Pattern.ZIPF), interrupt)
    (figures,) = raised.value.figures
    assert figures.operations == 1000
    assert figures.notes == ("stopped by Ctrl-C",)
    assert cuda.memory == {}


def test_a_gpu_that_is_not_there(cuda: FakeCuda) -> None:
    cuda.devices = 0
    for run, workload in ((run_cache_gpu, PAGES), (run_array_gpu, ELEMENTS)):
        with pytest.raises(BamQueryError, match="no cuda:0"):
            run(workload, quiet)  # type: ignore[operator]
