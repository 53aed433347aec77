"""Words that kernels count in: zeros on the GPU, copied back to the host once for all of them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.host_blocks import HostBlock, HostBlocks
from bamquery.engine.cuda.session import CudaSession

_BYTES: Final = 256 << 10
_ERROR: Final = struct.Struct("<IIQIHBx")
"""ErrorRecord: count, nsid, lba, blocks, status, opcode."""
TALLY: Final = np.dtype(
    [(name, np.uint64) for name in ("commands", "blocks", "in_flight_ns", "waited_ns", "warp_ns")]
)
"""A ScanTally."""


@dataclass(frozen=True)
class Slot:
    """A place on a board: `address` on the GPU, `offset` here."""

    address: int
    offset: int


class Board:
    """One chunk's counters; one thread uses it."""

    def __init__(self, session: CudaSession, blocks: HostBlocks) -> None:
        """Make it zeros, ordered on the session's stream."""
        self._session = session
        self._blocks = blocks
        self._used = 0
        self._memory = session.allocate(_BYTES, "counting in a scan")
        self._host = blocks.take(_BYTES)
        cuda = session.gpu.cuda
        cuda("clear counters", "cuMemsetD8Async", self._memory.ptr, 0, _BYTES, session.driver_stream)
        self.fetch_errors: Final = self.take(_ERROR.size)
        self.load_errors: Final = self.take(_ERROR.size)
        self.control: Final = self.take(8)

    def take(self, size: int) -> Slot:
        """Zeros, on a multiple of 8."""
        slot = Slot(self._memory.ptr + self._used, self._used)
        self._used += -(-size // 8) * 8
        assert self._used <= _BYTES, "a chunk counts more than a board holds"
        return slot

    def tally(self) -> Slot:
        """A ScanTally."""
        return self.take(TALLY.itemsize)

    def copy_back(self) -> None:
        """Start to copy all counters to the host, behind what the session's stream was given before."""
        cuda = self._session.gpu.cuda
        what = (self._host.host, self._memory.ptr, self._used, self._session.driver_stream)
        cuda("copy counters from the GPU", "cuMemcpyDtoHAsync", *what)

    def words(self, slot: Slot, count: int = 1) -> NDArray[np.uint32]:
        """What was there when counters were copied back."""
        return self._host.view(slot.offset, np.uint32, count).copy()

    def word(self, slot: Slot) -> int:
        """One of them."""
        return int(self.words(slot)[0])

    def tallied(self, slot: Slot) -> dict[str, int]:
        """A ScanTally's fields."""
        found: Any = self._host.view(slot.offset, TALLY, 1)[0]
        return {name: int(found[name]) for name in TALLY.names or ()}

    def error(self, slot: Slot) -> tuple[int, int, int, int, int] | None:
        """Count, namespace, LBA, blocks and status of the commands that failed; None if none did."""
        count, nsid, lba, blocks, code, _ = _ERROR.unpack_from(self._host.bytes.data, slot.offset)
        return (count, nsid, lba, blocks, code) if count else None

    def close(self) -> None:
        """The GPU has done with it."""
        self._blocks.give_back(self._host)


class Uploads:
    """Small arrays on their way to the GPU, which keeps them as long as this lives; one thread uses it."""

    def __init__(self, session: CudaSession, blocks: HostBlocks) -> None:
        self._session = session
        self._blocks = blocks
        self._held: list[Any] = []

    def put(self, data: NDArray[Any] | bytes, stream: Any) -> int:
        """Address on the GPU of a copy that is there for what `stream` is given next.

        The memory is ordered on the session's stream: another `stream` must have followed it.
        """
        array = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        size = max(flat.nbytes, 1)
        memory = self._session.allocate(size, "describing a chunk")
        if stream is not self._session.driver_stream:
            self._session.follow(stream, self._session.driver_stream)
        block = self._blocks.take(size)
        block.bytes[: flat.nbytes] = flat
        self._held.append((memory, block))
        if flat.nbytes:
            cuda = self._session.gpu.cuda
            cuda("copy to the GPU", "cuMemcpyHtoDAsync", memory.ptr, block.host, flat.nbytes, stream)
        return int(memory.ptr)

    def borrow(self, size: int) -> HostBlock:
        """Pinned memory for a copy from the GPU, kept as long as this lives."""
        block = self._blocks.take(size)
        self._held.append((None, block))
        return block

    def close(self) -> None:
        """The GPU has done with them."""
        for _, block in self._held:
            self._blocks.give_back(block)
        self._held.clear()
