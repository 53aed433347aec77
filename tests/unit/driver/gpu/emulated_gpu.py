"""A GPU whose memory is this process's, and whose kernels of driver/kernels run as fibers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bamquery.driver.compile.toolchain import KERNELS
from bamquery.driver.gpu.device import GpuKernel
from tests.native.programs import REPOSITORY
from tests.unit.engine.cuda_scan.emulator import Emulator
from tests.unit.engine.cuda_scan.fake_gpu import FakeGpu, FakeLaunch, FakeMemory

MORE_OF_CUDA = """
#define __noinline__

struct alignas(16) ulonglong2 {
  unsigned long long x, y;
};
inline int __ffs(int word) { return __builtin_ffs(word); }

"""
"""What kernels of benchmarks use beside those of scans."""

NO_PATIENCE = ("kPatience = 1u << 12;", "kPatience = 0;")
"""Waits of fibers count no looks, so they would be patient for ever."""

ELEMENTS = """
#include "driver/kernels/array_functions.cu"

namespace bamquery {

/// As numba's kernels do it: any launch shape, and lanes that sit out.
extern "C" __global__ void gather_elements(unsigned long long array, const long long* places,
                                           unsigned long long* out, unsigned long long count) {
  for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    if (i % 5 != 4) out[i] = bamquery_array_read_8(array, places[i]);
  }
}

extern "C" __global__ void double_elements(unsigned long long array) {
  const auto count = static_cast<uint64_t>(bamquery_array_size(array));
  for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    bamquery_array_write_8(array, i, 2 * bamquery_array_read_8(array, i));
  }
}

}  // namespace bamquery
"""


class Memory(FakeMemory):
    """What the driver asks of a GPU's memory, too."""

    def read(self, size: int | None = None, offset: int = 0) -> bytes:
        return self.bytes[offset : None if size is None else offset + size].tobytes()

    def read_array(self, dtype: Any, size: int | None = None, offset: int = 0) -> Any:
        return np.frombuffer(self.read(size, offset), dtype)


class EmulatedGpu(FakeGpu):
    """`bamquery.driver.gpu.device.Gpu`, as far as queues, caches and arrays call it."""

    def __init__(self, folder: Path, headers: Path = REPOSITORY) -> None:
        emulator = Emulator(
            folder, kernels=KERNELS, headers=headers, prelude=MORE_OF_CUDA, change=NO_PATIENCE
        )
        super().__init__(emulator)

    def __enter__(self) -> EmulatedGpu:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def allocate(self, size: int) -> Memory:
        return Memory(size, 0)

    def load(self, source: Any, name: str | None = None, *, defines: tuple[str, ...] = ()) -> GpuKernel:
        kernel = self._emulator.kernel(source, name or source, defines)
        return GpuKernel(kernel.name, kernel, kernel.sizes)

    def load_elements(self, name: str) -> GpuKernel:
        """A kernel of `ELEMENTS`."""
        kernel = self._emulator.text_kernel(name, ELEMENTS)
        return GpuKernel(name, kernel, kernel.sizes)

    def launch(
        self, kernel: GpuKernel, *arguments: Any, on_end: Callable[[], None] | None = None, **shape: Any
    ) -> FakeLaunch:
        try:
            return super().launch(kernel, *arguments, **shape)
        finally:
            if on_end is not None:
                on_end()
