"""Pinned memory of this process that copies to and from the GPU use again and again."""

from __future__ import annotations

import mmap
import threading
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.driver.gpu import Gpu
from bamquery.driver.gpu_memory import PinnedMemory

_LEAST: Final = 64 << 10


class HostBlock:
    """A run of bytes that both sides reach: `bytes` here, `address` there."""

    def __init__(self, gpu: Gpu, size: int) -> None:
        """Pinning takes a fraction of a millisecond for each MiB."""
        memory = mmap.mmap(-1, size)
        self.bytes: Final[NDArray[np.uint8]] = np.frombuffer(memory, np.uint8)
        self.host: Final = int(self.bytes.ctypes.data)
        self._pinned: Final[PinnedMemory] = gpu.pin(self.bytes, self.host, size)
        self.address: Final = self._pinned.address

    def view(self, offset: int, dtype: Any, count: int) -> NDArray[Any]:
        """Values of a type from a byte on, not copied."""
        size = np.dtype(dtype).itemsize * count
        return self.bytes[offset : offset + size].view(dtype)


class HostBlocks:
    """Blocks by size, a power of two; thread-safe. What is not given back is kept from being used again."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._free: dict[int, list[HostBlock]] = {}
        self._lock = threading.Lock()

    def take(self, size: int) -> HostBlock:
        """A block of at least `size` bytes, with anything in it.

        Raises:
            GpuError: no more memory can be pinned.
        """
        rounded = max(_LEAST, 1 << max(size - 1, 0).bit_length())
        with self._lock:
            free = self._free.setdefault(rounded, [])
            if free:
                return free.pop()
        return HostBlock(self._gpu, rounded)

    def give_back(self, block: HostBlock) -> None:
        """The GPU has done with it."""
        with self._lock:
            self._free[block.bytes.nbytes].append(block)
