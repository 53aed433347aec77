"""An NVMe drive that this process drives itself, and controllers over its queue pairs."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias

from bamquery import _native
from bamquery._native import QueueMemory
from bamquery.driver.controller import Controller
from bamquery.errors import BamQueryError

Doorbells: TypeAlias = Literal["auto", "registers", "shadow", "forwarded"]
Interface: TypeAlias = Literal["auto", "group", "iommufd"]
TIMEOUT: Final = 10.0
"""Seconds of commands for the controller itself."""


@dataclass(frozen=True)
class DriveLimits:
    """What a drive's queues may be like.

    Attributes:
        queue_pairs: how many.
        queue_depth: entries of a ring at most: a power of two within CAP.MQES.
        transfer_bytes: of a command at most: MDTS, as far as landing buffers go.
        doorbell_stride: CAP.DSTRD.
        contiguous_queues: CAP.CQR.
        shadow_doorbells: whether there is Doorbell Buffer Config.
        memory_buffer: whether there is a controller memory buffer, which is not used.
        ready_timeout: CAP.TO, in seconds.
    """

    queue_pairs: int
    queue_depth: int
    transfer_bytes: int
    doorbell_stride: int
    contiguous_queues: bool
    shadow_doorbells: bool
    memory_buffer: bool
    ready_timeout: float


@dataclass(frozen=True)
class DriveNamespace:
    """A namespace as the drive describes it.

    Attributes:
        nsid: its number.
        block_bytes: of an LBA; 0 where what the drive says cannot be.
        blocks: how many it has.
        metadata_bytes: beside each block.
        protection: type of protection information; 0: none.
        write_protected: writes get an error.
        volatile_cache: what was written is durable only after a flush.
        refusal: why the driver does not take it; None: it does.
    """

    nsid: int
    block_bytes: int
    blocks: int
    metadata_bytes: int
    protection: int
    write_protected: bool
    volatile_cache: bool
    refusal: str | None


class NvmeDrive:
    """A drive that is bound to vfio-pci; a context manager, which shuts it down. It stays bound."""

    def __init__(
        self,
        address: str,
        *,
        writable: bool = False,
        interface: Interface = "auto",
        timeout: float = TIMEOUT,
    ) -> None:
        """Take the drive over in whatever state it is, make it ready, and ask what it has.

        Args:
            address: on the PCI bus.
            writable: otherwise neither this process nor a GPU can write to it.
            interface: of VFIO; auto: iommufd where the kernel has it.
            timeout: seconds of commands for the controller itself.

        Raises:
            StorageError: something is in the way; says which commands would help.
            NvmeError: the drive did not do what it was told.
        """
        self.native: Final = _native.NvmeDrive(
            address, writable=writable, interface=interface, timeout=timeout
        )
        self.limits: Final = DriveLimits(**self.native.limits())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def address(self) -> str:
        """With its domain."""
        return self.native.address

    @property
    def interface(self) -> str:
        """By which it is reached, in words."""
        return self.native.interface

    def identity(self) -> dict[str, Any]:
        """Model, firmware, version of NVMe, vendor and number of the controller: no serial number."""
        return {name: value for name, value in self.native.identity().items() if name != "serial"}

    def namespaces(self) -> tuple[DriveNamespace, ...]:
        """All that are active."""
        return tuple(DriveNamespace(**found) for found in self.native.namespaces())

    def namespace(self, nsid: int | None) -> DriveNamespace:
        """The one of a number; None: the first that the driver takes.

        Raises:
            BamQueryError: there is none, or the driver does not take it.
        """
        namespaces = self.namespaces()
        there = ", ".join(str(one.nsid) for one in namespaces if one.refusal is None) or "none"
        for one in namespaces:
            if nsid == one.nsid and one.refusal is not None:
                raise BamQueryError(f"namespace {nsid} of {self.address}: {one.refusal}; others: {there}")
            if one.refusal is None and nsid in (None, one.nsid):
                return one
        reasons = "; ".join(f"namespace {one.nsid}: {one.refusal}" for one in namespaces if one.refusal)
        what = "no namespace that can be read" if nsid is None else f"no namespace {nsid}"
        raise BamQueryError(
            f"{self.address} has {what}; namespaces: {'; '.join(filter(None, [there, reasons]))}"
        )

    def queue_memory(
        self, nsid: int, *, pairs: int, depth: int, transfer_bytes: int, shared_pairs: int = 0
    ) -> QueueMemory:
        """Memory for queue pairs of this drive, as near to what is asked for as its limits allow.

        Args:
            nsid: of the namespace whose blocks are moved.
            pairs: to lease.
            depth: entries of a ring.
            transfer_bytes: of a command: one block at least.
            shared_pairs: for page caches.
        """
        block_bytes = self.namespace(nsid).block_bytes
        room = max(self.limits.queue_pairs - shared_pairs, 1)
        return QueueMemory(
            leased_pairs=min(pairs, room),
            shared_pairs=shared_pairs,
            depth=min(depth, self.limits.queue_depth),
            slot_bytes=max(min(transfer_bytes, self.limits.transfer_bytes), block_bytes),
            block_bytes=block_bytes,
            doorbell_stride=self.limits.doorbell_stride,
        )

    def statistics(self) -> dict[str, Any]:
        """Commands for the controller itself, their errors, aborts, resets, events."""
        return self.native.statistics()

    def close(self) -> None:
        """Shut it down: no controller of it works any more."""
        self.native.close()


class NvmeController(Controller):
    """Queue pairs that a drive serves. A context manager, which deletes them."""

    def __init__(self, drive: NvmeDrive, memory: QueueMemory, *, doorbells: Doorbells = "auto") -> None:
        """Create the queue pairs of `memory`, whose rings are fresh.

        Raises:
            ValueError: says what of the memory's shape the drive cannot do.
            StorageError: no queue pairs are left, or the memory cannot be mapped.
        """
        self._native: Final = _native.NvmeController(drive.native, memory, doorbells=doorbells)
        super().__init__(memory, self._native)
        self.drive: Final = drive

    @property
    def native(self) -> _native.NvmeController:
        """For the extension's clients."""
        return self._native

    @property
    def doorbells(self) -> str:
        """How the drive hears of commands: `registers`, `shadow` or `forwarded`."""
        return self._native.doorbell_kind

    @property
    def doorbells_text(self) -> str:
        """The same, for people."""
        return self._native.doorbell_text

    @property
    def doorbell_writes(self) -> int | None:
        """Writes to registers by whoever passes doorbells on; None where who issues a command does it."""
        return self._native.doorbell_writes
