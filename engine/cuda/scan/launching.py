"""Kernels of engine/kernels: compiled once, started on any stream."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path
from typing import Any, Final

import bamquery.engine
from bamquery.driver.gpu import Gpu, GpuKernel
from bamquery.driver.gpu_arguments import Argument, pack

KERNELS: Final = Path(bamquery.engine.__file__).parent / "kernels"
"""Kernels of the engine, one file each."""
THREADS: Final = 256
"""Of a block of all kernels but the prefix sum's."""
WARPS: Final = 8
"""Of such a block: kernels with a warp for each vector."""
_SCAN_THREADS: Final = 1024


class Launcher:
    """Starts kernels that wait for nothing but memory; thread-safe."""

    def __init__(self, gpu: Gpu, lock: threading.RLock) -> None:
        """`lock` is held while kernels are loaded."""
        self._gpu = gpu
        self._lock = lock
        self._kernels: dict[tuple[str, str, tuple[str, ...]], GpuKernel] = {}

    def kernel(self, file: str, name: str, *defines: str) -> GpuKernel:
        """A kernel of a file, compiled if nobody has yet.

        Raises:
            KernelError: it does not compile.
            GpuError: it cannot be loaded.
        """
        key = (file, name, defines)
        found = self._kernels.get(key)
        if found is None:
            with self._lock:
                found = self._gpu.load(KERNELS / f"{file}.cu", name, defines=defines)
                self._kernels[key] = found
        return found

    def start(
        self, kernel: GpuKernel, *arguments: Argument, grid: int, stream: Any, block: int = THREADS
    ) -> None:
        """Start it behind what the stream was given before; what it uses must live as long as it runs.

        Raises:
            GpuError: it cannot be started.
        """
        packed = pack(kernel.name, arguments, kernel.sizes)
        buffers = [ctypes.create_string_buffer(data, len(data)) for data in packed]
        addresses = (ctypes.c_void_p * len(buffers))(*[ctypes.addressof(b) for b in buffers])
        self._gpu.enter()
        self._gpu.cuda(
            f"launch {kernel.name}",
            "cuLaunchKernel",
            *(kernel.function, grid, 1, 1, block, 1, 1, 0, stream, ctypes.addressof(addresses), 0),
        )

    def prefix_sums(self, counts: int, count: int, sums: int, total: int, stream: Any) -> None:
        """Sums of the words before each of `count` words, and of all behind the last, which `total` gets.

        All are addresses; `sums` has one word more than `counts`.
        """
        kernel = self.kernel("scan_select", "scan_offsets")
        self.start(kernel, counts, count, sums, total, grid=1, block=_SCAN_THREADS, stream=stream)

    def grid(self, items: int, of_a_block: int = THREADS) -> int:
        """Blocks for so many items: as many as keep the GPU busy, each then takes several."""
        return max(1, min(-(-items // of_a_block), 16 * self._gpu.multiprocessors))
