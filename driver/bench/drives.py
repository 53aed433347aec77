"""The path `drive`: blocks of real drives, by the queue pairs of each; all drives at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

from bamquery import _native
from bamquery.driver.bench.measure import measure
from bamquery.driver.bench.workload import (
    SECTOR_BYTES,
    BlockWorkload,
    DriveFigures,
    Figures,
    Interrupted,
    NamespacePlace,
    PathName,
    Progress,
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
        run = _DrivesRun(stations, stack)
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


@dataclass(frozen=True)
class _Started:
    """Clients at work on one namespace."""

    run: _native.RingsRun
    controller: NvmeController


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

    def start(self, stack: ExitStack) -> _Started:
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
        return _Started(run, controller)

    def fill(self) -> None:
        """Write the content of the seed all over the extent."""
        memory = self._drive.queue_memory(self.place.nsid, pairs=1, depth=64, transfer_bytes=128 << 10)
        with NvmeController(self._drive, memory) as controller:
            client = QueueClient(controller)
            for offset in range(0, self._workload.extent_bytes, _FILL_BYTES):
                piece = bytearray(min(_FILL_BYTES, self._workload.extent_bytes - offset))
                _native.fill_content(piece, self._workload.seed, offset // SECTOR_BYTES)
                client.write(self.place.nsid, offset // memory.block_bytes, piece)
            client.flush(self.place.nsid)

    def _check(self, namespace: DriveNamespace) -> None:
        block, size = self._workload.block_bytes, namespace.blocks * namespace.block_bytes
        most = self._drive.limits.transfer_bytes
        if block < namespace.block_bytes or block > most:
            raise SettingError(
                f"--block-size {block}: {self.place} takes {namespace.block_bytes} to {most}, powers of two"
            )
        if self._workload.extent_bytes > size:
            raise SettingError(f"--extent {self._workload.extent_bytes}: {self.place} has {size} bytes")


class _DrivesRun:
    """Clients on all drives: a `measure.Run`."""

    def __init__(self, stations: Sequence[_Station], stack: ExitStack) -> None:
        self._stations = stations
        self._started = [station.start(stack) for station in stations]
        self.drives: tuple[DriveFigures, ...] = ()

    @property
    def operations(self) -> int:
        return sum(started.run.operations for started in self._started)

    @property
    def bytes(self) -> int:
        return sum(started.run.bytes for started in self._started)

    @property
    def seconds(self) -> float:
        return min(started.run.seconds for started in self._started)

    @property
    def finished(self) -> bool:
        return all(started.run.finished for started in self._started)

    def stop(self) -> dict[str, Any]:
        found = [started.run.stop() for started in self._started]
        self.drives = tuple(
            _figures_of(station.place, started.controller, one)
            for station, started, one in zip(self._stations, self._started, found, strict=True)
        )
        wrong = [one for one in found if one["mismatches"]]
        return {
            "operations": sum(one["operations"] for one in found),
            "bytes": sum(one["bytes"] for one in found),
            "seconds": max(one["seconds"] for one in found),
            "cpu_seconds": max(one["cpu_seconds"] for one in found),
            "latency": _slowest([one["latency"] for one in found if one["latency"]]),
            "errors": sum(one["errors"] for one in found),
            "first_error": next((one["first_error"] for one in found if one["errors"]), ""),
            "mismatches": sum(one["mismatches"] for one in found),
            "first_mismatch": wrong[0]["first_mismatch"] if wrong else 0,
            "counters": {"doorbell_writes": sum(drive.doorbell_writes for drive in self.drives)},
        }


def _figures_of(place: NamespacePlace, controller: NvmeController, found: dict[str, Any]) -> DriveFigures:
    by_others = controller.doorbell_writes
    return DriveFigures(
        namespace=str(place),
        commands=found["operations"] + found["errors"],
        bytes=found["bytes"],
        errors=found["errors"],
        # Where the clients' doorbells are memory, what counts is what reaches the drive's registers.
        doorbell_writes=found["counters"]["doorbells"] if by_others is None else by_others,
    )


def _slowest(latencies: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Of several drives, the worst of each figure: those of all commands lie below."""
    if not latencies:
        return None
    return {name: max(one[name] for one in latencies) for name in latencies[0]}
