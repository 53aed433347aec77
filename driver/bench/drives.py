"""The path `drive`: blocks of real drives, by the queue pairs of each; all drives at the same time."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

from bamquery import _native
from bamquery.driver.bench.measure import measure
from bamquery.driver.bench.together import Part, Together, in_flight
from bamquery.driver.bench.workload import (
    SECTOR_BYTES,
    BlockWorkload,
    DriveFigures,
    Figures,
    Interrupted,
    NamespacePlace,
    PathName,
    Progress,
    Setup,
)
from bamquery.driver.nvme.drive import DriveNamespace, NvmeController, NvmeDrive
from bamquery.driver.queue_client import QueueClient
from bamquery.errors import SettingError

_FILL_BYTES: Final = 1 << 20


def run_drives(workload: BlockWorkload, progress: Progress) -> Figures:
    """Figures of the workload's drives. All are closed again.

    Raises:
        Interrupted: Ctrl-C; with the figures so far.
        SettingError: a drive has no such blocks.
        BamQueryError: a drive cannot be opened, or has no such namespace.
    """
    with ExitStack() as stack:
        opened: dict[str, NvmeDrive] = {}
        places = workload.backing.drives
        for place in places:
            if place.address not in opened:
                drive = NvmeDrive(place.address, writable=workload.backing.writable)
                opened[place.address] = stack.enter_context(drive)
        stations = [_Station(place, opened[place.address], workload) for place in places]
        if workload.backing.writable:
            for station in stations:
                station.fill()
        run = Together([station.start(stack) for station in stations])
        notes = tuple(dict.fromkeys(station.note for station in stations))
        if workload.verify and not workload.backing.writable:
            notes += ("what a drive holds is not known: each block is compared with its first read",)
        try:
            figures = measure(
                PathName.DRIVE, run, workload.seconds, progress, verify=workload.verify, notes=notes
            )
        except Interrupted as stopped:
            raise Interrupted([replace(one, drives=run.drives) for one in stopped.figures]) from None
        return replace(figures, drives=run.drives)


class _Station:
    """One namespace, and what its clients do there."""

    def __init__(self, place: NamespacePlace, drive: NvmeDrive, workload: BlockWorkload) -> None:
        self.place = place
        self._drive = drive
        self._workload = workload
        self._namespace = drive.namespace(place.nsid)
        self._check(self._namespace)
        self._memory = drive.queue_memory(
            place.nsid,
            pairs=max(workload.pairs // len(workload.backing.drives), 1),
            depth=workload.depth,
            transfer_bytes=workload.block_bytes,
        )
        self.note = ""

    def start(self, stack: ExitStack) -> Part:
        """Queue pairs, for as long as the stack lasts, and clients on all of them."""
        workload, memory = self._workload, self._memory
        controller = stack.enter_context(NvmeController(self._drive, memory))
        job = _native.BlockJob(
            block_bytes=workload.block_bytes,
            blocks=workload.blocks,
            clients=memory.leased_pairs,
            depth=memory.slots,
            pattern=workload.pattern,
            theta=workload.theta,
            write_share=workload.write_share,
            seed=workload.seed,
            verify=workload.verify,
        )
        run = _native.start_controller_bench(
            memory,
            controller.native,
            job,
            nsid=self.place.nsid,
            known_content=workload.backing.writable,
            deadline_seconds=workload.deadline_seconds,
        )
        self.note = (
            f"{self.place}: {memory.leased_pairs} queue pairs of {memory.depth}, "
            f"LBAs of {memory.block_bytes} bytes; doorbells: {controller.doorbells_text}; "
            f"by {self._drive.interface}"
        )
        return Part(run, lambda found: figures_of(str(self.place), controller, memory, found))

    def fill(self) -> None:
        """Write the content of the seed all over the extent."""
        fill_drive(self._drive, self.place.nsid, self._workload)

    def _check(self, namespace: DriveNamespace) -> None:
        block, size = self._workload.block_bytes, namespace.blocks * namespace.block_bytes
        most = self._drive.limits.transfer_bytes
        if block < namespace.block_bytes or block > most:
            raise SettingError(
                f"--block-size {block}: {self.place} takes {namespace.block_bytes} to {most}, powers of two"
            )
        if self._workload.extent_bytes > size:
            raise SettingError(f"--extent {self._workload.extent_bytes}: {self.place} has {size} bytes")


def fill_drive(drive: NvmeDrive, nsid: int, workload: Setup) -> None:
    """Write the content of the workload's seed all over its extent of a namespace."""
    memory = drive.queue_memory(nsid, pairs=1, depth=64, transfer_bytes=128 << 10)
    with NvmeController(drive, memory) as controller:
        client = QueueClient(controller)
        for offset in range(0, workload.extent_bytes, _FILL_BYTES):
            piece = bytearray(min(_FILL_BYTES, workload.extent_bytes - offset))
            _native.fill_content(piece, workload.seed, offset // SECTOR_BYTES)
            client.write(nsid, offset // memory.block_bytes, piece)
        client.flush(nsid)


def figures_of(
    namespace: str, controller: NvmeController, memory: _native.QueueMemory, found: dict[str, Any]
) -> DriveFigures:
    """Of what clients that read blocks returned."""
    by_others = controller.doorbell_writes
    return DriveFigures(
        namespace=namespace,
        commands=found["operations"] + found["errors"],
        bytes=found["bytes"],
        errors=found["errors"],
        # Where the clients' doorbells are memory, what counts is what reaches the drive's registers.
        doorbell_writes=found["counters"]["doorbells"] if by_others is None else by_others,
        pairs=memory.leased_pairs,
        depth=memory.depth,
        in_flight=in_flight(found),
    )
