"""A controller's queue pairs as the kernels of one GPU see them."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Final

from bamquery._native import QueueMemory, status_text
from bamquery.closeable import Closeable
from bamquery.driver.gpu.arguments import Argument
from bamquery.driver.gpu.device import Gpu, GpuKernel
from bamquery.driver.gpu.launch import Launch
from bamquery.driver.gpu.memory import GpuMemory, PinnedMemory
from bamquery.driver.nvme.gpu_doorbells import gpu_doorbells
from bamquery.errors import GpuError, NvmeError

_ERROR_RECORD: Final = struct.Struct("<IIQIHBB")
"""ErrorRecord: count, nsid, lba, blocks, status, opcode, drive."""
_SETTLE_S: Final = 10.0
_PAGE: Final = 4096
_OPCODES: Final = {0: "flush", 1: "write", 2: "read"}


@dataclass(frozen=True)
class PairStatistics:
    """What a queue pair's users noted since its pool was made.

    Attributes:
        doorbells: how often the submission tail was rung.
        errors: completions with a status other than success.
        missed: commands that missed their deadline.
        late: completions of such commands, whose slots are free again.
        quarantined: slots whose commands never completed.
        broken: the controller broke the protocol; the pair is not used any more.
    """

    doorbells: int
    errors: int
    missed: int
    late: int
    quarantined: int
    broken: bool


class GpuQueues(Closeable):
    """Queue pairs in pinned memory, their flags and views in the GPU's, and an error record.

    Stop the controller first, which ends all kernels that wait for it; then close this; then the GPU.
    """

    def __init__(
        self,
        gpu: Gpu,
        memory: QueueMemory,
        activity: Callable[[], AbstractContextManager[object]],
    ) -> None:
        """Make `memory`'s queue pairs, whose rings are fresh, a pool for `gpu`.

        Args:
            gpu: whose kernels are to use them.
            memory: the controller's; kept as long as the GPU has it.
            activity: called before each launch and left after it: a GPU's stores wake no controller.

        Raises:
            GpuError: the memory cannot be pinned or allocated, or the doorbells are registers that the GPU
                does not reach.
        """
        self.gpu: Final = gpu
        self.memory: Final = memory
        self._activity = activity
        with ExitStack() as undo:
            self._pinned = undo.enter_context(gpu.pin(memory, memory.address, memory.size))
            self._doorbells = self._map_doorbells(undo)
            self._pool = undo.enter_context(gpu.allocate(memory.pool_bytes))
            self.view, contents = self._make_pool()
            self._pool.write(contents)
            self.view_memory: Final = undo.enter_context(gpu.allocate(len(self.view)))
            self.view_memory.write(self.view)
            self.errors: Final[GpuMemory] = undo.enter_context(gpu.allocate(_ERROR_RECORD.size))
            self._resources = undo.pop_all()

    def _map_doorbells(self, undo: ExitStack) -> PinnedMemory | None:
        found = self.memory.drive_doorbells
        if found is None:
            return None
        address, size, registers = found
        if registers:
            possible = gpu_doorbells(self.gpu.pci_address)
            if possible.kind != "registers":
                raise GpuError(
                    f"{self.gpu.name} cannot write to a drive's registers: {possible.reason}; make its "
                    "NvmeController with doorbells='forwarded'"
                )
        size += -size % _PAGE
        for page in range(address, address + size, _PAGE):  # mapped by the kernel when they are accessed
            ctypes.c_uint32.from_address(page).value  # noqa: B018
        return undo.enter_context(self.gpu.pin(self.memory, address, size, registers=registers))

    def _make_pool(self) -> tuple[bytes, bytes]:
        doorbells = None if self._doorbells is None else self._doorbells.address
        return self.memory.make_pool(self._pinned.address, self._pool.address, doorbells)

    def start(
        self,
        kernel: GpuKernel,
        *arguments: Argument,
        grid: int,
        block: int,
        shared_bytes: int = 0,
        stream: Any = None,
        others: Sequence[GpuQueues] = (),
    ) -> Launch:
        """Start a kernel that uses the queue pairs, and those of `others`; see Gpu.launch().

        Their controllers are awake until it ends.
        """
        awake = ExitStack()
        try:
            for queues in (self, *others):
                awake.enter_context(queues._activity())
            return self.gpu.launch(
                kernel,
                *arguments,
                grid=grid,
                block=block,
                shared_bytes=shared_bytes,
                stream=stream,
                on_end=awake.close,
            )
        except BaseException:
            awake.close()
            raise

    def run(
        self,
        kernel: GpuKernel,
        *arguments: Argument,
        grid: int,
        block: int,
        shared_bytes: int = 0,
        timeout_s: float = 60.0,
        others: Sequence[GpuQueues] = (),
    ) -> float:
        """Start a kernel, wait for it and for what it says of its commands; returns its seconds.

        Raises:
            NvmeError: a command failed; the first that did.
            GpuError: the kernel failed or did not end in time.
        """
        launch = self.start(
            kernel, *arguments, grid=grid, block=block, shared_bytes=shared_bytes, others=others
        )
        seconds = launch.wait(timeout_s)
        self.check(several=bool(others))
        return seconds

    def check(self, *, several: bool = False) -> None:
        """Raise what the kernels recorded since the last look; of `several` drives, which it was.

        Raises:
            NvmeError: the first command that failed, and how many did.
        """
        count, nsid, lba, blocks, code, opcode, drive = _ERROR_RECORD.unpack(self.errors.read())
        if count == 0:
            return
        self.errors.clear()
        what = _OPCODES.get(opcode, f"command {opcode:02x}h")
        size = f" of {blocks} block{'s' if blocks > 1 else ''}" if blocks else ""
        others = f"; {count - 1} more failed after it" if count > 1 else ""
        message = f"{what}{size} failed: {status_text(code)}{others}"
        raise NvmeError(message, nsid, lba, code >> 8, code & 0xFF, drive if several else -1)

    def statistics(self) -> list[PairStatistics]:
        """Of each queue pair; leased ones are as of their last lease's end."""
        found = self.memory.pool_statistics(self.view, self._pool.read())
        return [PairStatistics(*pair) for pair in found]

    def renew(self) -> None:
        """Make the pool anew, after the controller created its queues again with fresh rings."""
        _, contents = self._make_pool()
        self._pool.write(contents)
        self.errors.clear()

    def close(self, settle_s: float = _SETTLE_S) -> None:
        """Let kernels end, then give memory and pins back; what a kernel still uses stays."""
        with suppress(GpuError):  # which was raised where the kernel was waited for
            self.gpu.settle(settle_s)
        self._resources.close()
