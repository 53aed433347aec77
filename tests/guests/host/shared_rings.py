"""The memory that a guest's drive and a process of the host share: the place for Python.

guest/shared_rings.hpp says the same in C++.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final

from bamquery._native import QueueMemory

LAYOUT: Final = struct.Struct("<II7IIQQ")
"""SharedRings: stage, nsid, QueueShape, queue, bus, blocks."""
PAGE: Final = 4096
_NAP_S: Final = 0.01


class Stage(IntEnum):
    """Who does what."""

    NOTHING = 0
    SERVED = 1
    DONE = 2


@dataclass(frozen=True)
class RingShape:
    """What the guest is to serve: QueueShape, as far as it is chosen."""

    leased_pairs: int = 4
    shared_pairs: int = 2
    depth: int = 64
    slot_bytes: int = 16384

    def arguments(self) -> tuple[str, ...]:
        """Of `serve_rings`."""
        return tuple(map(str, (self.leased_pairs, self.shared_pairs, self.depth, self.slot_bytes)))

    def memory_bytes(self) -> int:
        """Of a file for them: a power of two, since it becomes a PCI device's memory."""
        queues = QueueMemory(
            leased_pairs=self.leased_pairs,
            shared_pairs=self.shared_pairs,
            depth=self.depth,
            slot_bytes=self.slot_bytes,
        )
        return max(1 << 20, 1 << (PAGE + queues.size - 1).bit_length())


def make_file(path: Path, shape: RingShape) -> int:
    """Make the memory's file, and return its size.

    Raises:
        OSError: there is no room: QEMU would be killed where it finds that out.
    """
    size = shape.memory_bytes()
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
    return size


class SharedMemory:
    """The host's map of it, until the process ends."""

    def __init__(self, path: Path) -> None:
        """Map the file. OSError."""
        with path.open("r+b") as file:
            self._map: Final = mmap.mmap(file.fileno(), 0)
        self._bytes: Final = memoryview(self._map)
        self._stage: Final = self._bytes[:4].cast("I")
        self.nsid = 0
        self.blocks = 0

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self._bytes)

    def await_served(self, seconds: float) -> bool:
        """False: the guest did not come to that within so many seconds."""
        end = time.monotonic() + seconds
        while self._stage[0] != Stage.SERVED:
            if time.monotonic() > end:
                return False
            time.sleep(_NAP_S)
        return True

    def queues(self) -> QueueMemory:
        """The queue pairs that the guest serves, for reading."""
        _, self.nsid, *shape, queue, bus, self.blocks = LAYOUT.unpack_from(self._bytes)
        leased, shared, depth, slots, slot_bytes, block_bytes, stride = shape
        return QueueMemory(
            leased_pairs=leased,
            shared_pairs=shared,
            depth=depth,
            slots=slots,
            slot_bytes=slot_bytes,
            block_bytes=block_bytes,
            doorbell_stride=stride,
            memory=self._bytes[PAGE:],
            bus=bus,
            first_queue=queue,
            read_only=True,
        )

    def say_done(self) -> None:
        """The guest need not serve any more."""
        self._stage[0] = Stage.DONE
