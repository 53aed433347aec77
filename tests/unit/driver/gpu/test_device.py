"""Opening a GPU, its memory and launches, on a CUDA that is made of Python: tests/gpu has the real one."""

import ctypes
import struct
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bamquery.driver.compile.compiler import CompiledKernel, KernelText
from bamquery.driver.gpu import device as gpu_module
from bamquery.driver.gpu import wait as gpu_wait
from bamquery.driver.gpu.arguments import pack
from bamquery.driver.gpu.device import Gpu
from bamquery.errors import GpuError, KernelError
from tests.unit.driver.fake_cuda import FakeCuda, Result


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    fake = FakeCuda()
    fake.install(monkeypatch)
    monkeypatch.setattr(gpu_module, "_abandoned", [])
    monkeypatch.setattr(gpu_module, "stored_kernel", lambda *_: CompiledKernel(b"", "", cached=True))
    return fake


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"init": Result.CUDA_ERROR_NO_DEVICE}, "CUDA shows no GPU.*CUDA_VISIBLE_DEVICES"),
        ({"init": Result.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH}, "SYSTEM_DRIVER_MISMATCH.*driver 580"),
        ({"version": 12080}, r"driver is for CUDA 12\.8.*driver 580"),
        ({"devices": 0}, "no cuda:0.*0 GPUs"),
        ({"capability": (7, 5)}, r"compute capability 7\.5.*8\.0.*CPU"),
    ],
)
def test_a_gpu_that_cannot_be_used_says_what_to_do(
    cuda: FakeCuda, wrong: dict[str, object], said: str
) -> None:
    vars(cuda).update(wrong)
    with pytest.raises(GpuError, match=said):
        Gpu()


def test_without_a_driver(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(flags: int) -> None:
        raise RuntimeError("libcuda.so.1 is nowhere")

    monkeypatch.setattr(cuda, "cuInit", missing)
    with pytest.raises(GpuError, match=r"driver is not installed.*driver 580 or newer, or use the CPU"):
        Gpu()


def test_memory_is_zeros_and_takes_what_is_written(cuda: FakeCuda) -> None:
    with Gpu() as gpu, gpu.allocate(24) as memory:
        assert memory.read() == bytes(24)
        memory.write(b"abc", 2)
        memory.write(np.array([7, 8], np.int64), 8)
        assert memory.read(3, 2) == b"abc"
        assert memory.read_array(np.int64, 16, 8).tolist() == [7, 8]
        memory.clear()
        assert memory.read() == bytes(24)
        for wrong in [
            lambda: memory.write(bytes(25)),
            lambda: memory.read(9, 16),
            lambda: memory.read(1, -1),
        ]:
            with pytest.raises(GpuError, match="do not lie in GPU memory of 24 bytes"):
                wrong()
    assert cuda.memory == {}


def test_what_does_not_fit_says_so(cuda: FakeCuda) -> None:
    cuda.fails.add("cuMemAlloc")
    with Gpu() as gpu, pytest.raises(GpuError, match=r"allocate 1,024 bytes on NVIDIA Test.*OUT_OF_MEMORY"):
        gpu.allocate(1024)


def test_pinned_memory_is_kept_as_long_as_it_is_pinned(cuda: FakeCuda) -> None:
    owner = ctypes.create_string_buffer(4096)
    with Gpu() as gpu:
        pinned = gpu.pin(owner, ctypes.addressof(owner), 4096)
        assert pinned.address == ctypes.addressof(owner)
        pinned.close()
        pinned.close()
    assert cuda.calls.count("cuMemHostRegister") == cuda.calls.count("cuMemHostUnregister") == 1


def test_a_limit_on_pinned_memory_is_named(cuda: FakeCuda) -> None:
    cuda.fails.add("cuMemHostRegister")
    with Gpu() as gpu, pytest.raises(GpuError, match="memlock"):
        gpu.pin(None, 4096, 4096)


def test_a_kernel_gets_its_arguments(cuda: FakeCuda) -> None:
    cuda.parameters = [8, 4, 8, 4, 12]
    seen: list[bytes] = []
    cuda.kernel = seen.extend
    with Gpu() as gpu, gpu.allocate(1) as memory:
        kernel = gpu.load("ring_test", "some_kernel")
        launch = gpu.launch(kernel, memory, -5, 2.5, np.float32(1.5), b"by value....", grid=1, block=32)
        assert launch.wait(1.0) == 1.5
        assert launch.done
        assert not gpu.busy
        expected = [
            struct.pack("<Q", memory.address),
            *(struct.pack(f, v) for f, v in [("<i", -5), ("<d", 2.5)]),
        ]
        assert seen == [*expected, struct.pack("<f", 1.5), b"by value...."]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((1,), "takes 2 arguments, not 1"),
        ((1, 2, 3), "takes 2 arguments, not 3"),
        ((1 << 32, 2), "takes 4 bytes as argument 1, not 4294967296"),
        ((b"abc", 2), "takes 4 bytes as argument 1, not one of 3 bytes"),
        ((1, np.int32(2)), "takes 8 bytes as argument 2, not one of 4 bytes"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    cuda: FakeCuda, arguments: tuple[object, ...], said: str
) -> None:
    cuda.parameters = [4, 8]
    with Gpu() as gpu, pytest.raises(KernelError, match=said):
        gpu.launch(gpu.load("ring_test"), *arguments, grid=1, block=1)  # type: ignore[arg-type]
    assert "cuLaunchKernel" not in cuda.calls


def test_a_null_pointer_is_eight_bytes() -> None:
    assert pack("kernel", [None, True], [8, 1]) == [bytes(8), b"\1"]


def test_shared_memory_above_the_usual_is_asked_for_once(cuda: FakeCuda) -> None:
    with Gpu() as gpu:
        kernel = gpu.load("ring_test")
        for shared_bytes in [1024, 100_000, 100_000, 60_000]:
            gpu.launch(kernel, grid=1, block=1, shared_bytes=shared_bytes).wait(1)
    assert cuda.calls.count("cuFuncSetAttribute") == 1


def test_a_launch_that_is_refused_leaves_nothing_waiting(cuda: FakeCuda) -> None:
    cuda.fails.add("cuLaunchKernel")
    ended: list[bool] = []
    with Gpu() as gpu:
        with pytest.raises(GpuError, match=r"launch ring_test with 7 blocks of 2048 threads.*OUT_OF_MEMORY"):
            gpu.launch(gpu.load("ring_test"), grid=7, block=2048, on_end=lambda: ended.append(True))
        assert not gpu.busy
    assert ended == [True]
    assert cuda.calls.count("cuEventCreate") == cuda.calls.count("cuEventDestroy")


def test_a_kernel_that_does_not_end_is_an_error_and_its_memory_stays(cuda: FakeCuda) -> None:
    ended: list[bool] = []
    owner = object()
    with Gpu() as gpu, gpu.allocate(8) as memory, gpu.pin(owner, 4096, 4096):
        cuda.event = Result.CUDA_ERROR_NOT_READY
        launch = gpu.launch(gpu.load("ring_test"), grid=1, block=1, on_end=lambda: ended.append(True))
        with pytest.raises(GpuError, match=r"ring_test did not end within 0\.01 s and runs on"):
            launch.wait(0.01)
        assert gpu.busy
        assert not ended
    assert list(cuda.memory) == [memory.address]
    assert "cuMemHostUnregister" not in cuda.calls
    assert "cuStreamDestroy" not in cuda.calls
    assert gpu_module._abandoned == [gpu]  # and what it would have given back


def test_what_is_closed_beside_a_kernel_is_given_back_once_that_has_ended(cuda: FakeCuda) -> None:
    released: list[str] = []
    with Gpu() as gpu:
        memory, pinned = gpu.allocate(8), gpu.pin(object(), 4096, 4096)
        cuda.event = Result.CUDA_ERROR_NOT_READY
        kernel = gpu.load("ring_test")
        first = gpu.launch(kernel, grid=1, block=1)
        memory.close()
        pinned.close(lambda: released.append("pages"))
        assert cuda.memory
        assert released == []
        gpu.launch(kernel, grid=1, block=1)
        cuda.event = Result.CUDA_SUCCESS
        assert first.done
        cuda.event = Result.CUDA_ERROR_NOT_READY
        assert gpu.busy  # the later one, which came when they were closed already
        assert cuda.memory == {}
        assert released == ["pages"]
        cuda.event = Result.CUDA_SUCCESS
        assert not gpu.busy
    assert cuda.calls.count("cuMemHostUnregister") == 1


def test_many_threads_see_one_end(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[bool] = []
    looks = threading.Barrier(8)

    def slowly(event: object) -> tuple[Result]:
        time.sleep(0.001)  # so that the others come while this one looks
        return (Result.CUDA_SUCCESS,)

    with Gpu() as gpu:
        launch = gpu.launch(gpu.load("ring_test"), grid=1, block=1, on_end=lambda: ended.append(True))
        monkeypatch.setattr(cuda, "cuEventQuery", slowly)

        def look() -> bool:
            looks.wait()
            return launch.done

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(lambda _: look(), range(8)))
    assert ended == [True]
    assert cuda.calls.count("cuEventDestroy") == 2


def test_a_copy_that_does_not_end_is_an_error(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_wait, "STREAM_DEADLINE_S", 0.01)
    with Gpu() as gpu, gpu.allocate(8) as memory:
        cuda.stream = Result.CUDA_ERROR_NOT_READY
        with pytest.raises(GpuError, match=r"copying .* did not end within 0\.01 s.*dmesg"):
            memory.read()
    assert cuda.memory  # the copy may go on


def test_a_kernel_that_ends_late_frees_all(cuda: FakeCuda) -> None:
    with Gpu() as gpu, gpu.allocate(8):
        cuda.event = Result.CUDA_ERROR_NOT_READY
        launch = gpu.launch(gpu.load("ring_test"), grid=1, block=1)
        with pytest.raises(GpuError, match="did not end"):
            launch.wait(0.0)
        cuda.event = Result.CUDA_SUCCESS
        assert launch.wait(0.0) == 1.5
    assert cuda.memory == {}
    assert gpu_module._abandoned == []


def test_a_kernel_that_fails_says_how_every_time_it_is_asked(cuda: FakeCuda) -> None:
    ended: list[bool] = []
    with Gpu() as gpu:
        cuda.event = Result.CUDA_ERROR_ILLEGAL_ADDRESS
        launch = gpu.launch(gpu.load("ring_test"), grid=1, block=1, on_end=lambda: ended.append(True))
        for _ in range(2):
            with pytest.raises(GpuError, match="ring_test failed: CUDA_ERROR_ILLEGAL_ADDRESS"):
                launch.wait(1)
        assert ended == [True]
        assert not gpu.busy


def test_waiting_can_be_interrupted(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    with Gpu() as gpu:
        cuda.event = Result.CUDA_ERROR_NOT_READY
        launch = gpu.launch(gpu.load("ring_test"), grid=1, block=1)
        monkeypatch.setattr("time.sleep", interrupt)
        with pytest.raises(KeyboardInterrupt):
            launch.wait(60)
        assert gpu.busy


def test_a_file_of_kernels_is_loaded_once(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []

    def find_stored(source: object, options: object, cache: object) -> CompiledKernel:
        compiled.append((source, options))
        return CompiledKernel(b"", "", cached=False)

    monkeypatch.setattr(gpu_module, "stored_kernel", find_stored)
    with Gpu() as gpu:
        gpu.load("ring_test", "one")
        gpu.load("ring_test", "two")
        gpu.load(Path("elsewhere.cu"), defines=("A=1",))
    assert len(compiled) == 2


def test_a_file_that_did_not_compile_is_tried_again(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: list[CompiledKernel | KernelError] = [
        KernelError("does not compile"),
        CompiledKernel(b"", "", cached=False),
    ]

    def compile_kernel(source: object, options: object, cache: object) -> CompiledKernel:
        found = outcomes.pop(0)
        if isinstance(found, KernelError):
            raise found
        return found

    monkeypatch.setattr(gpu_module, "stored_kernel", lambda *_: None)
    monkeypatch.setattr(gpu_module, "compile_kernel", compile_kernel)
    with Gpu() as gpu:
        with pytest.raises(KernelError, match="does not compile"):
            gpu.load("ring_test")
        assert gpu.load("ring_test").name == "ring_test"
        assert gpu.compilation("ring_test") is None, "it is loaded"
    assert outcomes == []


class Code:
    """A program's, as cuda.core has it."""

    def get_kernel(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(handle=1, arguments_info=[])


def test_code_of_a_text_is_its_kernels_own(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    loading = SimpleNamespace(from_cubin=lambda code, name: Code())
    monkeypatch.setattr(sys.modules["cuda.core"], "ObjectCode", loading)
    with Gpu() as gpu:
        kernel = gpu.load_compiled(gpu.compile_text(KernelText("program", "text")).wait(), "program")
        code = weakref.ref(kernel.code)
        assert code() is not None
        del kernel
        assert code() is None
        assert gpu.load("ring_test").code is None, "a file's is the GPU's"
