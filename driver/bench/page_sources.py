"""What a cache's clients on CPUs read from: software controllers or drives, any number, and what each did."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from bamquery import _native
from bamquery.driver.bench.drives import fill_drive
from bamquery.driver.bench.served import name_of, serve
from bamquery.driver.bench.workload import ArrayWorkload, CacheWorkload, DriveFigures
from bamquery.driver.controller import Controller
from bamquery.driver.nvme.drive import NvmeController, NvmeDrive
from bamquery.driver.software_controller import SoftwareController
from bamquery.errors import SettingError


@dataclass
class Sources:
    """One controller for each drive, each with queue pairs for all clients.

    Attributes:
        known_content: of every namespace it is that of the workload's shares.
    """

    known_content: bool
    names: list[str] = field(default_factory=list)
    controllers: list[Controller] = field(default_factory=list)
    nsids: list[int] = field(default_factory=list)

    @property
    def native(self) -> list[tuple[_native.QueueMemory, _native.Controller, int]]:
        """For `start_cache_bench` and `start_array_bench`."""
        return [
            (controller.memory, controller.native, nsid)
            for controller, nsid in zip(self.controllers, self.nsids, strict=True)
        ]

    @property
    def clients(self) -> int:
        """As many as have a queue pair of each drive."""
        return min(controller.memory.leased_pairs for controller in self.controllers)

    def add(self, name: str, controller: Controller, nsid: int) -> None:
        """One drive more."""
        self.names.append(name)
        self.controllers.append(controller)
        self.nsids.append(nsid)


@contextmanager
def open_sources(workload: CacheWorkload | ArrayWorkload) -> Iterator[Sources]:
    """Everything that serves the workload; stopped, removed and closed again.

    Raises:
        SettingError: a drive has no such pages.
        BamQueryError: a backing cannot be used.
    """
    with ExitStack() as stack:
        if workload.backing.drives:
            yield _open_drives(workload, stack)
            return
        sources = Sources(known_content=True)
        for number, share in enumerate(workload.shares()):
            memory = _native.QueueMemory(
                leased_pairs=workload.pairs,
                shared_pairs=0,
                depth=workload.depth,
                slot_bytes=workload.page_bytes,
                block_bytes=workload.lba_bytes,
            )
            served = stack.enter_context(serve(share, memory, writable=False))
            sources.add(name_of(number, share), served.controller, served.nsid)
        yield sources


def _open_drives(workload: CacheWorkload | ArrayWorkload, stack: ExitStack) -> Sources:
    writable = workload.backing.writable
    opened: dict[str, NvmeDrive] = {}
    sources = Sources(known_content=writable)
    for share in workload.shares():
        (place,) = share.backing.drives
        if place.address not in opened:
            opened[place.address] = stack.enter_context(NvmeDrive(place.address, writable=writable))
        drive = opened[place.address]
        space = drive.namespace(place.nsid)
        most = drive.limits.transfer_bytes
        if not space.block_bytes <= workload.page_bytes <= most:
            raise SettingError(
                f"--page-size {workload.page_bytes}: {place} takes powers of two from {space.block_bytes} "
                f"to {most}"
            )
        if share.extent_bytes > space.blocks * space.block_bytes:
            size = space.blocks * space.block_bytes
            raise SettingError(f"--extent: {place} has {size} bytes for its {share.extent_bytes}")
        if writable:
            fill_drive(drive, place.nsid, share)
        # Namespaces of one drive share its queue pairs.
        neighbours = sum(one.address == place.address for one in workload.backing.drives)
        pairs = min(workload.pairs, max(drive.limits.queue_pairs // neighbours, 1))
        memory = drive.queue_memory(
            place.nsid, pairs=pairs, depth=workload.depth, transfer_bytes=workload.page_bytes
        )
        controller = stack.enter_context(NvmeController(drive, memory))
        sources.add(str(place), controller, place.nsid)
    return sources


class PagesRun:
    """Clients of a cache: a `measure.Run` that knows what each drive did."""

    def __init__(self, native: _native.CacheRun, sources: Sources, page_bytes: int) -> None:
        self._native = native
        self._sources = sources
        self._page_bytes = page_bytes
        self.drives: tuple[DriveFigures, ...] = ()
        """Where there are several, or real ones."""

    @property
    def operations(self) -> int:
        """So far."""
        return self._native.operations

    @property
    def bytes(self) -> int:
        """So far."""
        return self._native.bytes

    @property
    def seconds(self) -> float:
        """Since they began."""
        return self._native.seconds

    @property
    def finished(self) -> bool:
        """Whether all gave up by themselves."""
        return self._native.finished

    def stop(self) -> dict[str, Any]:
        """End them and add up."""
        found = self._native.stop()
        software = [one for one in self._sources.controllers if isinstance(one, SoftwareController)]
        for controller in software:
            controller.stop()  # So that figures stand still.
        counted = [controller.statistics() for controller in software]
        if software:
            found["counters"] |= {
                "controller_reads": sum(one.reads for one in counted),
                "controller_writes": sum(one.writes for one in counted),
                "controller_read_bytes": sum(one.read_bytes for one in counted),
                "controller_write_bytes": sum(one.write_bytes for one in counted),
                "controller_errors": sum(one.errors for one in counted),
            }
            found["direct_path"] = next((path for one in counted for path in one.direct_paths if path), "")
        if len(self._sources.controllers) > 1 or not software:
            self.drives = tuple(
                self._figures(name, controller, rings)
                for name, controller, rings in zip(
                    self._sources.names, self._sources.controllers, found["drives"], strict=True
                )
            )
        return found

    def _figures(self, name: str, controller: Controller, rings: dict[str, int]) -> DriveFigures:
        errors = rings["errors"] + rings["missed"]
        return DriveFigures(
            namespace=name,
            commands=rings["commands"],
            bytes=(rings["commands"] - errors) * self._page_bytes,
            errors=errors,
            doorbell_writes=rings["doorbells"],
            pairs=controller.memory.leased_pairs,
            depth=controller.memory.depth,
        )
