"""CUDA's driver interface and cuda-core as far as bamquery.driver.gpu.device uses them, without a GPU.

Memory is this process's own; kernels are Python functions of their raw argument bytes.
"""

import ctypes
import sys
from collections.abc import Callable
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest


class Result(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803


class Flag(IntEnum):
    PLAIN = 0


class Parameter(NamedTuple):
    offset: int
    size: int


IO_MEMORY = 4
"""CU_MEMHOSTREGISTER_IOMEMORY"""


class FakeCuda:
    """What tests set (attributes) and look at (`calls`)."""

    def __init__(self) -> None:
        self.init = Result.CUDA_SUCCESS
        self.version = 13000
        self.devices = 1
        self.capability = (9, 0)
        self.event = Result.CUDA_SUCCESS
        self.stream = Result.CUDA_SUCCESS
        self.fails: set[str] = set()
        self.calls: list[str] = []
        self.parameters: list[int] = []
        self.kernel: Callable[[list[bytes]], None] = lambda arguments: None
        self.memory: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        """Any call: noted, and answered with success and something."""
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append(name)
            if name in self.fails:
                return (Result.CUDA_ERROR_OUT_OF_MEMORY, 0)
            answer = getattr(self, f"answer_{name}", lambda *_: (7,))(*arguments)
            return (Result.CUDA_SUCCESS, *answer)

        return call

    def cuInit(self, flags: int) -> tuple[Result]:
        return (self.init,)

    def cuEventQuery(self, event: object) -> tuple[Result]:
        return (self.event,)

    def cuStreamQuery(self, stream: object) -> tuple[Result]:
        return (self.stream,)

    def cuGetErrorName(self, status: Result) -> tuple[Result, bytes]:
        return Result.CUDA_SUCCESS, status.name.encode()

    def cuGetErrorString(self, status: Result) -> tuple[Result, bytes]:
        return Result.CUDA_SUCCESS, b"what it means"

    def answer_cuDriverGetVersion(self) -> tuple[int]:
        return (self.version,)

    def answer_cuCtxGetStreamPriorityRange(self) -> tuple[int, int]:
        return (0, -5)

    def answer_cuDeviceGetCount(self) -> tuple[int]:
        return (self.devices,)

    def answer_cuMemAlloc(self, size: int) -> tuple[int]:
        buffer = ctypes.create_string_buffer(b"\xaa" * size, size)
        self.memory[ctypes.addressof(buffer)] = buffer
        return (ctypes.addressof(buffer),)

    def answer_cuMemFree(self, address: int) -> tuple[()]:
        del self.memory[address]
        return ()

    def answer_cuMemHostGetDevicePointer(self, address: int, flags: int) -> tuple[int]:
        return (address,)

    def answer_cuMemsetD8Async(self, to: int, value: int, size: int, stream: object) -> tuple[()]:
        ctypes.memset(to, value, size)
        return ()

    def answer_cuMemcpyHtoDAsync(self, to: int, source: int, size: int, stream: object) -> tuple[()]:
        ctypes.memmove(to, source, size)
        return ()

    def answer_cuMemcpyDtoHAsync(self, to: int, source: int, size: int, stream: object) -> tuple[()]:
        ctypes.memmove(to, source, size)
        return ()

    def answer_cuEventElapsedTime(self, start: object, end: object) -> tuple[float]:
        return (1500.0,)

    def answer_cuLaunchKernel(self, function: object, *rest: Any) -> tuple[()]:
        addresses = ctypes.cast(rest[-2], ctypes.POINTER(ctypes.c_void_p))
        sizes = self.parameters
        self.kernel([ctypes.string_at(addresses[i] or 0, size) for i, size in enumerate(sizes)])
        return ()

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put it where bamquery.driver.gpu.device imports from."""
        api = ModuleType("cuda.bindings.driver")
        api.__getattr__ = lambda name: getattr(self, name)  # type: ignore[method-assign]
        api.CUresult, api.CUkernel = Result, int  # type: ignore[attr-defined]
        for name, member in [
            ("CUstream_flags", "CU_STREAM_NON_BLOCKING"),
            ("CUevent_flags", "CU_EVENT_DEFAULT"),
            ("CUfunction_attribute", "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"),
        ]:
            setattr(api, name, SimpleNamespace(**{member: Flag.PLAIN}))
        api.CU_MEMHOSTREGISTER_DEVICEMAP, api.CU_MEMHOSTREGISTER_PORTABLE = 2, 1  # type: ignore[attr-defined]
        api.CU_MEMHOSTREGISTER_IOMEMORY = IO_MEMORY  # type: ignore[attr-defined]
        core = ModuleType("cuda.core")
        core.Device = lambda ordinal: SimpleNamespace(  # type: ignore[attr-defined]
            compute_capability=self.capability,
            name="NVIDIA Test",
            pci_bus_id="0000:41:00.0",
            properties=SimpleNamespace(multiprocessor_count=4),
            set_current=lambda: None,
        )

        def found(name: str) -> Any:
            return SimpleNamespace(handle=1, arguments_info=[Parameter(0, size) for size in self.parameters])

        core.ObjectCode = SimpleNamespace(  # type: ignore[attr-defined]
            from_cubin=lambda code, name: SimpleNamespace(get_kernel=found)
        )
        monkeypatch.setitem(sys.modules, "cuda.bindings.driver", api)
        monkeypatch.setitem(sys.modules, "cuda.core", core)
