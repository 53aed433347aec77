"""Words that kernels write for the host: zeros at first, read once a kernel has ended."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import rmm

from bamquery.engine.cuda.scan.resources.host_blocks import HostBlocks

if TYPE_CHECKING:
    from bamquery.engine.cuda.session import CudaSession

_SHEET_BYTES: Final = 64 << 10
_WORD: Final = 4


@dataclass(frozen=True, slots=True)
class WordSlot:
    """Some words of 32 bits on the GPU, from `address` on."""

    sheet: rmm.DeviceBuffer
    address: int
    count: int


class _Sheet(threading.local):
    """Zeros that a thread has, and how many bytes of them it has given away."""

    def __init__(self) -> None:
        self.memory: rmm.DeviceBuffer | None = None
        self.used = 0


class ReadBack:
    """Gives out words, and reads them; thread-safe."""

    def __init__(self, session: CudaSession) -> None:
        self._session = session
        self._blocks = HostBlocks(session.gpu)
        self._own = _Sheet()

    def take(self, count: int) -> WordSlot:
        """Zeros, ordered on the session's stream.

        Raises:
            MemoryLimitError: there is no memory for them.
        """
        own, size = self._own, -(-count * _WORD // 8) * 8
        if own.memory is None or own.used + size > own.memory.size:
            session = self._session
            own.memory = session.allocate(max(size, _SHEET_BYTES), "what kernels tell the host")
            own.used = 0
            clear = (own.memory.ptr, 0, own.memory.size, session.driver_stream)
            session.gpu.cuda("clear words", "cuMemsetD8Async", *clear)
        slot = WordSlot(own.memory, own.memory.ptr + own.used, count)
        own.used += size
        return slot

    def read(self, slot: WordSlot) -> list[int]:
        """The words once all is done that the session's stream was given; the host waits.

        Raises:
            GpuError: something on the stream failed, or does not end.
            CancelledError: the thread's query was cancelled.
        """
        session, size = self._session, slot.count * _WORD
        block = self._blocks.take(size)
        copy = (block.host, slot.address, size, session.driver_stream)
        session.gpu.cuda("copy words from the GPU", "cuMemcpyDtoHAsync", *copy)
        session.synchronize()  # where this raises, the copy may go on, and nobody is given the block again
        found: list[int] = block.view(0, np.uint32, slot.count).tolist()
        self._blocks.give_back(block)
        return found
