"""Words that kernels count in: zeros on the GPU, copied back to the host once for all of them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import rmm
from numpy.typing import NDArray

from bamquery.engine.cuda.launcher import Launcher
from bamquery.engine.cuda.scan.resources.host_blocks import HostBlock, HostBlocks
from bamquery.engine.cuda.session import CudaSession

_BYTES: Final = 256 << 10
_WITHIN_COMMANDS: Final = 4096
"""So much travels with the commands. More takes its turn at the copy engine, behind all that streams: 20 ms
for 64 KiB behind a GiB, measured; a kernel fetches it at once."""
_BLOCK_BYTES: Final = 16 << 10
_BLOCKS: Final = 8
"""Of the kernel that fetches; it reads little, and the streams need the bus."""
_ERROR: Final = struct.Struct("<IIQIHBx")
"""ErrorRecord: count, nsid, lba, blocks, status, opcode."""
TALLY: Final = np.dtype(
    [(name, np.uint64) for name in ("commands", "blocks", "in_flight_ns", "waited_ns", "warp_ns")]
)
"""A ScanTally."""


@dataclass(frozen=True)
class Slot:
    """A place on a board: `address` on the GPU, `offset` in the host's copy of its `sheet`."""

    address: int
    sheet: int
    offset: int


class _Sheet:
    """So many bytes of a board, there and here."""

    def __init__(self, session: CudaSession, blocks: HostBlocks, size: int) -> None:
        self.memory: Final = session.allocate(size, "counting in a scan")
        self.host: Final = blocks.take(size)
        self.size: Final = size
        self.used = 0
        cuda = session.gpu.cuda
        cuda("clear counters", "cuMemsetD8Async", self.memory.ptr, 0, size, session.driver_stream)


class CounterBoard:
    """One chunk's counters; one thread uses it. One sheet is enough but for thousands of columns or files."""

    def __init__(self, session: CudaSession, blocks: HostBlocks) -> None:
        """Make it zeros, ordered on the session's stream."""
        self._session = session
        self._blocks = blocks
        self._sheets = [_Sheet(session, blocks, _BYTES)]
        self.fetch_errors: Final = self.take(_ERROR.size)
        self.load_errors: Final = self.take(_ERROR.size)
        self.control: Final = self.take(8)

    def take(self, size: int) -> Slot:
        """Zeros, on a multiple of 8."""
        rounded = -(-size // 8) * 8
        sheet = self._sheets[-1]
        if sheet.used + rounded > sheet.size:
            sheet = self._add_sheet(max(rounded, _BYTES))
        slot = Slot(sheet.memory.ptr + sheet.used, len(self._sheets) - 1, sheet.used)
        sheet.used += rounded
        return slot

    def tally(self) -> Slot:
        """A ScanTally."""
        return self.take(TALLY.itemsize)

    def copy_back(self, stream: Any = None) -> None:
        """Start to copy all counters to the host, behind what a stream was given before, or the session's."""
        cuda = self._session.gpu.cuda
        where = self._session.driver_stream if stream is None else stream
        for sheet in self._sheets:
            what = (sheet.host.host, sheet.memory.ptr, sheet.used, where)
            cuda("copy counters from the GPU", "cuMemcpyDtoHAsync", *what)

    def words(self, slot: Slot, count: int = 1) -> NDArray[np.uint32]:
        """What was there when counters were copied back."""
        return self._host(slot).view(slot.offset, np.uint32, count).copy()

    def word(self, slot: Slot) -> int:
        """One of them."""
        return int(self.words(slot)[0])

    def read_tally(self, slot: Slot) -> dict[str, int]:
        """A ScanTally's fields."""
        found: Any = self._host(slot).view(slot.offset, TALLY, 1)[0]
        return {name: int(found[name]) for name in TALLY.names or ()}

    def error(self, slot: Slot) -> tuple[int, int, int, int, int] | None:
        """Count, namespace, LBA, blocks and status of the commands that failed; None if none did."""
        found = self._host(slot).bytes.data
        count, nsid, lba, blocks, code, _ = _ERROR.unpack_from(found, slot.offset)
        return (count, nsid, lba, blocks, code) if count else None

    def close(self) -> None:
        """The GPU has done with it."""
        for sheet in self._sheets:
            self._blocks.give_back(sheet.host)

    def _host(self, slot: Slot) -> HostBlock:
        return self._sheets[slot.sheet].host

    def _add_sheet(self, size: int) -> _Sheet:
        sheet = _Sheet(self._session, self._blocks, size)
        self._sheets.append(sheet)
        self._session.synchronize()  # the scan's other streams have followed this one before
        return sheet


class Uploads:
    """Small arrays on their way to the GPU, which keeps them as long as this lives; one thread uses it."""

    def __init__(self, session: CudaSession, blocks: HostBlocks, launcher: Launcher) -> None:
        self._session = session
        self._blocks = blocks
        self._launcher = launcher
        self._held: list[rmm.DeviceBuffer] = []
        self._sources: list[HostBlock] = []

    def put(self, data: NDArray[Any] | bytes, stream: Any) -> int:
        """Address on the GPU of a copy that is there for what `stream` is given next."""
        array = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        memory = self._session.allocate(max(array.nbytes, 16), "describing a chunk", stream)
        self._held.append(memory)
        self.fill(memory, array, stream)
        return int(memory.ptr)

    def fill(self, memory: rmm.DeviceBuffer, array: NDArray[Any], stream: Any) -> None:
        """Start to copy an array to where `memory` begins."""
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if not flat.nbytes:
            return
        block = self._blocks.take(flat.nbytes)
        block.bytes[: flat.nbytes] = flat
        self._sources.append(block)
        if flat.nbytes <= _WITHIN_COMMANDS:
            cuda = self._session.gpu.cuda
            cuda("copy to the GPU", "cuMemcpyHtoDAsync", memory.ptr, block.host, flat.nbytes, stream)
            return
        self._launcher.start(
            self._launcher.kernel("scan_load", "scan_upload"),
            *(block.address, memory.ptr, flat.nbytes),
            grid=max(1, min(-(-flat.nbytes // _BLOCK_BYTES), _BLOCKS)),
            stream=stream,
        )

    def borrow(self, size: int) -> HostBlock:
        """Pinned memory for a copy from the GPU, kept as long as this lives."""
        block = self._blocks.take(size)
        self._sources.append(block)
        return block

    def close(self) -> None:
        """The GPU has done with them."""
        for block in self._sources:
            self._blocks.give_back(block)
        self._sources.clear()
        self._held.clear()
