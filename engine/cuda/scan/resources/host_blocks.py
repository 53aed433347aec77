"""Pinned memory of this process that copies to and from the GPU use again and again."""

from __future__ import annotations

import mmap
import threading
from collections import OrderedDict
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.driver.gpu.device import Gpu
from bamquery.driver.gpu.memory import PinnedMemory

_LEAST: Final = 64 << 10
_MOST_UNUSED: Final = 64 << 20
"""Bytes that are kept for later: what a scan's chunks need, and not what describing a large table took."""


class HostBlock:
    """A run of bytes that both sides reach: `bytes` here, `address` there."""

    def __init__(self, gpu: Gpu, size: int) -> None:
        """Pinning takes a fraction of a millisecond for each MiB."""
        memory = mmap.mmap(-1, size)
        self.bytes: Final[NDArray[np.uint8]] = np.frombuffer(memory, np.uint8)
        self.host: Final = int(self.bytes.ctypes.data)
        self._pinned: Final[PinnedMemory] = gpu.pin(self.bytes, self.host, size)
        self.address: Final = self._pinned.address

    def close(self) -> None:
        """Let the memory go."""
        self._pinned.close()

    def view(self, offset: int, dtype: Any, count: int) -> NDArray[Any]:
        """Values of a type from a byte on, not copied."""
        size = np.dtype(dtype).itemsize * count
        return self.bytes[offset : offset + size].view(dtype)


class HostBlocks:
    """Blocks by size, a power of two; thread-safe. What is not given back is kept from being used again."""

    def __init__(self, gpu: Gpu, most_unused: int = _MOST_UNUSED) -> None:
        """`most_unused`: bytes kept of what was given back; what was used last stays."""
        self._gpu = gpu
        self._most_unused = most_unused
        self._unused: OrderedDict[int, list[HostBlock]] = OrderedDict()
        """By size; sizes used last are behind."""
        self._lock = threading.Lock()
        self.unused_bytes = 0

    def take(self, size: int) -> HostBlock:
        """A block of at least `size` bytes, with anything in it.

        Raises:
            GpuError: no more memory can be pinned.
        """
        rounded = max(_LEAST, 1 << max(size - 1, 0).bit_length())
        with self._lock:
            unused = self._unused.get(rounded)
            if unused:
                self._unused.move_to_end(rounded)
                self.unused_bytes -= rounded
                return unused.pop()
        return HostBlock(self._gpu, rounded)

    def give_back(self, block: HostBlock) -> None:
        """The GPU has done with it."""
        size = block.bytes.nbytes
        with self._lock:
            self._unused.setdefault(size, []).append(block)
            self._unused.move_to_end(size)
            self.unused_bytes += size
            dropped = self._blocks_over_limit()
        for one in dropped:
            one.close()

    def _blocks_over_limit(self) -> list[HostBlock]:
        dropped = []
        while self.unused_bytes > self._most_unused:
            size, blocks = next(iter(self._unused.items()))
            if blocks:
                dropped.append(blocks.pop())
                self.unused_bytes -= size
            else:
                del self._unused[size]
        return dropped
