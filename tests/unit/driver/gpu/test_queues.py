"""Queue pairs for a GPU, on a CUDA that is made of Python: who owns what, when, and what errors say."""

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from bamquery._native import QueueMemory
from bamquery.driver.compile.compiler import CompiledKernel
from bamquery.driver.gpu import device as gpu_module
from bamquery.driver.gpu import wait as gpu_wait
from bamquery.driver.gpu.device import Gpu
from bamquery.driver.gpu.queues import GpuQueues, PairStatistics
from bamquery.driver.nvme.gpu_doorbells import GpuDoorbells
from bamquery.errors import GpuError, NvmeError
from tests.unit.driver.fake_cuda import IO_MEMORY, FakeCuda, Result

FRESH = PairStatistics(0, 0, 0, 0, 0, broken=False)


class Controller:
    """Notes whether somebody keeps it awake."""

    def __init__(self) -> None:
        self.awake = 0

    @contextmanager
    def activity(self) -> Iterator[None]:
        self.awake += 1
        yield
        self.awake -= 1


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    fake = FakeCuda()
    fake.install(monkeypatch)
    monkeypatch.setattr(gpu_module, "_abandoned", [])
    monkeypatch.setattr(gpu_module, "stored_kernel", lambda *_: CompiledKernel(b"", "", cached=True))
    monkeypatch.setattr("bamquery.driver.gpu.queues._SETTLE_S", 0.01)
    return fake


def test_the_pool_lies_on_the_gpu_and_the_rings_are_pinned(cuda: FakeCuda) -> None:
    memory = QueueMemory(leased_pairs=2, shared_pairs=1, depth=8)
    with Gpu() as gpu, GpuQueues(gpu, memory, Controller().activity) as queues:
        pairs, _, _, leased, shared, flags_bytes = struct.unpack("<3Q3I4x", queues.view)
        assert pairs in cuda.memory
        assert (leased, shared, flags_bytes) == (2, 1, memory.flags_bytes)
        assert queues.view_memory.read() == queues.view
        _, contents = memory.make_pool(memory.address, pairs)
        assert bytes(cuda.memory[pairs]) == contents
        assert queues.statistics() == [FRESH] * 3


def test_rings_in_a_files_map_are_pinned_where_they_are(cuda: FakeCuda, tmp_path: Path) -> None:
    path = tmp_path / "memory"
    path.write_bytes(bytes(1 << 20))
    with path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    memory = QueueMemory(depth=8, memory=memoryview(mapped)[4096:], bus=1 << 32)
    pinned: list[int] = []
    cuda.answer_cuMemHostRegister = lambda address, size, flags: pinned.extend((address, size)) or ()
    with Gpu() as gpu, GpuQueues(gpu, memory, nullcontext):
        assert pinned == [np.frombuffer(mapped, np.uint8).ctypes.data + 4096, memory.size]


def set_domain(monkeypatch: pytest.MonkeyPatch, kind: Literal["registers", "forwarded"]) -> None:
    """What its IOMMU domain lets the GPU do."""
    found = {"0000:41:00.0": GpuDoorbells(kind, "its IOMMU domain is made up")}
    monkeypatch.setattr("bamquery.driver.gpu.queues.gpu_doorbells", found.__getitem__)


@pytest.mark.parametrize("registers", [False, True])
def test_a_drives_doorbells_are_mapped_for_the_gpu(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch, *, registers: bool
) -> None:
    set_domain(monkeypatch, "registers" if registers else "forwarded")
    pages = mmap.mmap(-1, 8192)
    at = np.frombuffer(pages, np.uint8).ctypes.data
    memory = QueueMemory(doorbells=pages, registers=registers)
    pinned: list[tuple[int, int, bool]] = []

    def register(address: int, size: int, flags: int) -> tuple[()]:
        pinned.append((address, size, bool(flags & IO_MEMORY)))
        return ()

    cuda.answer_cuMemHostRegister = register
    cuda.answer_cuMemHostGetDevicePointer = lambda address, _: (address + (1 << 45),)
    with Gpu() as gpu, GpuQueues(gpu, memory, nullcontext) as queues:
        assert pinned == [(memory.address, memory.size, False), (at, 4096, registers)]
        pairs = struct.unpack_from("<Q", queues.view)[0]
        tail, head = struct.unpack_from("<2Q", bytes(cuda.memory[pairs]), 16)
        assert (tail, head) == (at + (1 << 45) + 128, at + (1 << 45) + 192)
        queues.renew()
        assert struct.unpack_from("<2Q", bytes(cuda.memory[pairs]), 16) == (tail, head)
    assert cuda.calls.count("cuMemHostUnregister") == 2


def test_registers_behind_an_iommu_that_translates_are_not_written_to(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stores would go elsewhere."""
    set_domain(monkeypatch, "forwarded")
    memory = QueueMemory(doorbells=mmap.mmap(-1, 4096), registers=True)
    with Gpu() as gpu, pytest.raises(GpuError, match=r"domain is made up; .* doorbells='forwarded'"):
        GpuQueues(gpu, memory, nullcontext)
    assert cuda.calls.count("cuMemHostRegister") == cuda.calls.count("cuMemHostUnregister") == 1


def test_registers_that_a_gpu_cannot_have_say_what_does_without(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_domain(monkeypatch, "registers")
    memory = QueueMemory(doorbells=mmap.mmap(-1, 4096), registers=True)

    def register(_address: int, _size: int, flags: int) -> tuple[()]:
        if flags & IO_MEMORY == 0:
            cuda.fails.add("cuMemHostRegister")  # from now on
        return ()

    cuda.answer_cuMemHostRegister = register
    with Gpu() as gpu, pytest.raises(GpuError, match="doorbells='forwarded' does without"):
        GpuQueues(gpu, memory, nullcontext)
    assert cuda.calls.count("cuMemHostUnregister") == 1


def test_kernels_end_before_memory_goes_and_pins_go_last(cuda: FakeCuda) -> None:
    with Gpu() as gpu:
        queues = GpuQueues(gpu, QueueMemory(), Controller().activity)
        cuda.event = Result.CUDA_ERROR_NOT_READY
        queues.start(gpu.load("ring_test"), grid=1, block=1)
        cuda.event = Result.CUDA_SUCCESS  # before the wait in close() is over
        cuda.calls.clear()
        queues.close()
        watched = {"cuEventElapsedTime", "cuMemFree", "cuMemHostUnregister"}
        order = [call for call in cuda.calls if call in watched]
        assert order == ["cuEventElapsedTime", "cuMemFree", "cuMemFree", "cuMemFree", "cuMemHostUnregister"]


def test_what_a_kernel_that_runs_on_may_use_stays(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_wait, "STREAM_DEADLINE_S", 0.05)
    with Gpu() as gpu:
        queues = GpuQueues(gpu, QueueMemory(), Controller().activity)
        cuda.event = Result.CUDA_ERROR_NOT_READY
        queues.start(gpu.load("ring_test"), grid=1, block=1)
        queues.close(settle_s=0.01)
    assert "cuMemFree" not in cuda.calls
    assert "cuMemHostUnregister" not in cuda.calls


def test_memory_that_cannot_be_had_leaves_none_behind(cuda: FakeCuda) -> None:
    cuda.fails.add("cuMemAlloc")
    with Gpu() as gpu:
        with pytest.raises(GpuError, match="allocate"):
            GpuQueues(gpu, QueueMemory(), Controller().activity)
        assert cuda.calls.count("cuMemHostRegister") == cuda.calls.count("cuMemHostUnregister") == 1


def test_the_controller_is_awake_from_before_a_launch_to_its_end(cuda: FakeCuda) -> None:
    controller = Controller()
    seen: list[int] = []
    cuda.kernel = lambda _: seen.append(controller.awake)
    with Gpu() as gpu, GpuQueues(gpu, QueueMemory(), controller.activity) as queues:
        cuda.event = Result.CUDA_ERROR_NOT_READY
        launch = queues.start(gpu.load("ring_test"), grid=1, block=1)
        with pytest.raises(GpuError, match="did not end"):
            launch.wait(0.0)
        assert controller.awake == 1  # for the kernel still wants answers
        cuda.event = Result.CUDA_SUCCESS
        launch.wait(0.0)
        assert controller.awake == 0
    assert seen == [1]


@pytest.mark.parametrize("how", ["refused", "failed"])
def test_the_controller_may_sleep_after_a_launch_that_did_not_work(cuda: FakeCuda, how: str) -> None:
    controller = Controller()
    with Gpu() as gpu, GpuQueues(gpu, QueueMemory(), controller.activity) as queues:
        if how == "refused":
            cuda.fails.add("cuLaunchKernel")
        else:
            cuda.event = Result.CUDA_ERROR_ILLEGAL_ADDRESS
        with pytest.raises(GpuError, match=how if how == "failed" else "cannot launch"):
            queues.run(gpu.load("ring_test"), grid=1, block=1)
        assert controller.awake == 0


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ((1, 3, 77, 8, 0x281, 2), r"read of 8 blocks failed: unrecovered read error \(namespace 3, LBA 77,"),
        ((5, 1, 0, 1, 0x7C0, 1), r"write of 1 block failed: .*; 4 more failed after it \(namespace 1"),
        ((1, 1, 0, 0, 0x006, 0), r"flush failed: .*status 0h/06h\)"),
    ],
)
def test_what_a_kernel_records_is_raised_once(cuda: FakeCuda, record: tuple[int, ...], said: str) -> None:
    cuda.parameters = [8]

    def fail(arguments: list[bytes]) -> None:
        (address,) = struct.unpack("<Q", arguments[0])
        struct.pack_into("<IIQIHBx", cuda.memory[address], 0, *record)

    cuda.kernel = fail
    with Gpu() as gpu, GpuQueues(gpu, QueueMemory(), Controller().activity) as queues:
        kernel = gpu.load("ring_test")
        with pytest.raises(NvmeError, match=said) as caught:
            queues.run(kernel, queues.errors, grid=1, block=1)
        assert (caught.value.nsid, caught.value.lba) == record[1:3]
        assert caught.value.sct << 8 | caught.value.sc == record[4]
        queues.check()


def test_a_renewed_pool_is_fresh(cuda: FakeCuda) -> None:
    cuda.parameters = [8]
    memory = QueueMemory(leased_pairs=1, shared_pairs=0, depth=4)
    with Gpu() as gpu, GpuQueues(gpu, memory, Controller().activity) as queues:
        (pool,) = struct.unpack_from("<Q", queues.view)
        fresh = bytes(cuda.memory[pool])
        (flags,) = struct.unpack_from("<Q", fresh, 56)

        def use(arguments: list[bytes]) -> None:
            struct.pack_into("<2I", cuda.memory[pool], flags - pool + 32, 9, 2)  # doorbells, errors

        cuda.kernel = use
        queues.run(gpu.load("ring_test"), queues.view_memory, grid=1, block=1)
        assert queues.statistics() == [PairStatistics(9, 2, 0, 0, 0, broken=False)]
        queues.renew()
        assert bytes(cuda.memory[pool]) == fresh
        assert queues.statistics() == [FRESH]
