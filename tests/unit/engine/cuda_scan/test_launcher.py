"""What kernels are given: parameters as CUDA takes them, from buffers that threads use again."""

from __future__ import annotations

import ctypes
import struct
import threading
from typing import Any

import pytest

from bamquery.driver.gpu.device import GpuKernel
from bamquery.errors import KernelError

SIZES = (8, 4, 24)


class Recorder:
    """A driver that reads parameters where a launch says that they are."""

    def __init__(self) -> None:
        self.seen: list[tuple[bytes, ...]] = []
        self.buffers: set[int] = set()

    def __call__(self, action: str, function: str, *arguments: Any) -> None:
        assert function == "cuLaunchKernel"
        self.buffers.add(arguments[9])
        places = (ctypes.c_uint64 * len(SIZES)).from_address(arguments[9])
        self.seen.append(tuple(ctypes.string_at(at, n) for at, n in zip(places, SIZES, strict=True)))


@pytest.fixture
def launch(scan_modules: None) -> Any:
    from bamquery.engine.cuda.scan.resources.launcher import Launcher

    recorder = Recorder()
    gpu: Any = type("Gpu", (), {"cuda": recorder})()
    launcher, kernel = Launcher(gpu, threading.RLock()), GpuKernel("k", None, SIZES)

    def start(*arguments: Any) -> Recorder:
        launcher.start(kernel, *arguments, grid=1, stream=None)
        return recorder

    return start


def test_each_launch_has_its_own(launch: Any) -> None:
    first, second = bytes(range(24)), bytes(range(24, 48))
    launch(1 << 40, 7, first)
    seen = launch(None, 9, second).seen
    assert seen == [
        (struct.pack("<Q", 1 << 40), struct.pack("<I", 7), first),
        (bytes(8), struct.pack("<I", 9), second),
    ]


def test_each_thread_has_a_buffer(launch: Any) -> None:
    launch(1, 2, bytes(24))
    launch(1, 2, bytes(24))
    other = threading.Thread(target=launch, args=(3, 4, bytes(24)))
    other.start()
    other.join(60)
    assert len(launch(1, 2, bytes(24)).buffers) == 2


@pytest.mark.parametrize(
    "arguments",
    [(1, 2, bytes(16)), (1, 2, bytes(32)), (1, 2, 3), (1, bytes(24)), (1, 2, None), (1, -1, bytes(24))],
)
def test_what_does_not_fit_is_refused(launch: Any, arguments: Any) -> None:
    launch(1, 2, bytes(24))
    with pytest.raises((KernelError, struct.error)):
        launch(*arguments)
