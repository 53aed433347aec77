"""Reads and writes of blocks through queue pairs, by threads of this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bamquery import _native
from bamquery.driver.controller import DEADLINE, Controller

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bamquery._native import Buffer


@dataclass(frozen=True)
class QueueCounts:
    """What a client's queue pairs have seen.

    Attributes:
        errors: completions with a status other than success.
        missed: commands that missed their deadline.
        late: of those, commands whose completion came.
        quarantined: slots that still wait for one.
        broken: queue pairs out of use, since the controller broke the protocol.
    """

    errors: int
    missed: int
    late: int
    quarantined: int
    broken: int


class QueueClient:
    """Any number of threads may call; each call leases a queue pair while it lasts.

    The controller's rings are fresh, and it has one client; the client keeps its threads awake. Every call
    raises NvmeError, which names namespace, LBA and status, for the first command that failed.
    """

    def __init__(self, controller: Controller) -> None:
        self._block_bytes = controller.memory.block_bytes
        self._native = _native.CpuQueueClient(controller.memory, controller.native)

    def read(self, nsid: int, lba: int, blocks: int, deadline: float = DEADLINE) -> bytes:
        """`blocks` blocks from `lba` on."""
        target = bytearray(blocks * self._block_bytes)
        self.read_into(nsid, lba, target, deadline)
        return bytes(target)

    def read_into(self, nsid: int, lba: int, target: Buffer, deadline: float = DEADLINE) -> None:
        """Fill `target`. ValueError: it is not of whole blocks."""
        self._native.read(nsid, lba, target, deadline)

    def read_places(
        self, nsid: int, lbas: NDArray[np.uint64], target: Buffer, deadline: float = DEADLINE
    ) -> None:
        """Fill `target` by one command for each of the blocks `lbas`, as many in flight as slots allow.

        Each place gets an equal share of `target`: whole blocks, no more than a command moves. ValueError
        otherwise.
        """
        self._native.read_places(nsid, lbas, target, deadline)

    def write(self, nsid: int, lba: int, source: Buffer, deadline: float = DEADLINE) -> None:
        """Write `source`. ValueError: it is not of whole blocks."""
        self._native.write(nsid, lba, source, deadline)

    def flush(self, nsid: int, deadline: float = DEADLINE) -> None:
        """Make what was written before durable."""
        self._native.flush(nsid, deadline)

    def settle(self) -> QueueCounts:
        """While no call runs: take completions that came late, and count."""
        return QueueCounts(*self._native.settle())
