"""Handing drives to user space, and giving them back to the kernel."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from bamquery.driver.machine import Machine
from bamquery.driver.nvme.access import vfio_files
from bamquery.driver.nvme.drives import KERNEL, Drive, find_drive
from bamquery.driver.nvme.iommu import VFIO_PCI, Module, find_iommu
from bamquery.driver.nvme.obstacles import find_obstacles
from bamquery.driver.nvme.sysfs import DEADLINE, Sysfs
from bamquery.driver.nvme.uses import processes_with
from bamquery.errors import BamQueryError, StorageError

_UNDO_DEADLINE: Final = 10.0
"""Seconds for each write that undoes: where one hung, others may, too."""
_DRIVER_SECONDS: Final = 5.0
"""Within which a driver that was asked to take a drive has it."""
_LOOK_SECONDS: Final = 0.02
_NOBODY: Final = "\n"
"""What takes an override away."""

Report = Callable[[str], None]


@dataclass(frozen=True)
class Step:
    """One change of the machine: a write to a file of sysfs, or a module that is loaded.

    Attributes:
        text: what is written; of a module, its name.
        file: where; empty: it is a module.
    """

    text: str
    file: str = ""

    def __str__(self) -> str:
        if not self.file:
            return f"modprobe {self.text}"
        return f"echo {'' if self.text == _NOBODY else f'{self.text} '}> {self.file}"


def check_bind(machine: Machine, addresses: Sequence[str]) -> list[Drive]:
    """The drives at these addresses, which may be bound.

    Raises:
        BamQueryError: one of them may not; names all that is in the way, and the ways out.
    """
    drives = [find_drive(machine, address) for address in dict.fromkeys(addresses)]
    together = {drive.address for drive in drives}
    for drive in drives:
        if found := find_obstacles(machine, drive, together):
            reasons = "; ".join(map(str, found))
            raise BamQueryError(f"{drive} cannot be handed to user space: {reasons}")
    return drives


def check_unbind(machine: Machine, address: str) -> Drive:
    """The drive at an address, which may be given back.

    Raises:
        BamQueryError: it may not, since a process drives it; the kernel would wait for that to end.
    """
    drive = find_drive(machine, address)
    if drive.is_bound and (owners := processes_with(machine, *vfio_files(machine, drive))):
        number = owners[0].rpartition("(")[2].rstrip(")")
        raise BamQueryError(
            f"{drive} is in use by the process {', '.join(owners)} → end it first: kill {number}"
        )
    return drive


def bind_steps(machine: Machine, drives: Sequence[Drive]) -> list[Step]:
    """What binding them takes, in order; nothing where all are bound."""
    steps = [step for drive in drives if not drive.is_bound for step in _hand_over(drive, VFIO_PCI)]
    if steps and find_iommu(machine).vfio_pci is not Module.LOADED:
        steps.insert(0, Step(VFIO_PCI))
    return steps


def unbind_steps(machine: Machine, drive: Drive) -> list[Step]:
    """What giving it back takes; nothing where the kernel has it."""
    if drive.driver == KERNEL:
        return []
    there = machine.exists(f"/sys/bus/pci/drivers/{KERNEL}")
    return [*([] if there else [Step(KERNEL)]), *_hand_over(drive, _NOBODY)]


def bind(sysfs: Sysfs, addresses: Sequence[str], report: Report, deadline: float = DEADLINE) -> None:
    """Hand drives to user space, and see that it is so; otherwise all is as it was.

    Args:
        sysfs: of the machine.
        addresses: of the drives.
        report: hears every step.
        deadline: seconds for each of them.

    Raises:
        BamQueryError: it is refused.
        StorageError: a step failed, or Ctrl-C came; says which, and in what state the drives are.
    """
    machine = sysfs.machine
    drives = check_bind(machine, addresses)
    before = [drive for drive in drives if not drive.is_bound]
    _take(sysfs, bind_steps(machine, drives), before, VFIO_PCI, report=report, deadline=deadline)


def unbind(sysfs: Sysfs, address: str, report: Report, deadline: float = DEADLINE) -> None:
    """Give a drive back to the kernel. Errors are those of `bind`."""
    drive = check_unbind(sysfs.machine, address)
    if steps := unbind_steps(sysfs.machine, drive):
        _take(sysfs, steps, [drive], KERNEL, report=report, deadline=deadline)


def _hand_over(drive: Drive, override: str) -> list[Step]:
    folder = _folder(drive)
    release = [Step(drive.address, f"{folder}/driver/unbind")] if drive.driver else []
    # The override first: what is released with it goes to nobody else.
    return [
        Step(override, f"{folder}/driver_override"),
        *release,
        Step(drive.address, "/sys/bus/pci/drivers_probe"),
    ]


def _take(
    sysfs: Sysfs,
    steps: Sequence[Step],
    drives: Sequence[Drive],
    driver: str,
    *,
    report: Report,
    deadline: float,
) -> None:
    for drive in drives:
        if not os.access(sysfs.machine.path(f"{_folder(drive)}/driver_override"), os.W_OK):
            raise BamQueryError(f"{drive}: changing its driver takes root: call it by sudo")
    done: list[Step] = []
    try:
        for step in steps:
            report(str(step))
            done.append(step)
            _do(sysfs, step, deadline)
        for drive in drives:
            _verify(sysfs.machine, drive, driver)
    except (OSError, StorageError, KeyboardInterrupt) as error:
        touched = [drive for drive in drives if any(drive.address in str(step) for step in done)]
        state = "; ".join(_restore(sysfs, drive, report) for drive in touched)
        if isinstance(error, KeyboardInterrupt):
            report(f"undone after Ctrl-C: {state}" if state else "nothing was done")
            raise
        raise StorageError(f"{_reason(done, error)}. {state or 'Nothing was changed'}") from error


def _do(sysfs: Sysfs, step: Step, deadline: float) -> None:
    if step.file:
        sysfs.write(step.file, step.text, deadline)
    else:
        sysfs.load_module(step.text, deadline)


def _verify(machine: Machine, drive: Drive, driver: str) -> None:
    until = time.monotonic() + _DRIVER_SECONDS
    while (now := _driver(machine, drive)) != driver:
        if time.monotonic() > until:
            raise StorageError(f"{drive}: its driver is {now or 'none'}, not {driver}; dmesg says why")
        time.sleep(_LOOK_SECONDS)


def _restore(sysfs: Sysfs, drive: Drive, report: Report) -> str:
    """Put a drive back to the driver that it had, as far as it lets us; says how it is now."""
    override = VFIO_PCI if drive.is_bound else _NOBODY
    folder = _folder(drive)
    failed = ""
    try:
        _undo(sysfs, Step(override, f"{folder}/driver_override"), report)
        now = _driver(sysfs.machine, drive)
        if now not in (None, drive.driver):
            _undo(sysfs, Step(drive.address, f"{folder}/driver/unbind"), report)
        if now != drive.driver and drive.driver is not None:
            _undo(sysfs, Step(drive.address, "/sys/bus/pci/drivers_probe"), report)
            _verify(sysfs.machine, drive, drive.driver)
    except (OSError, StorageError) as error:
        failed = f" (undoing failed, too: {getattr(error, 'strerror', None) or error})"
    now = _driver(sysfs.machine, drive)
    if now == drive.driver and not failed:
        return f"{drive.address} is as it was, driven by {now or 'nobody'}"
    return (
        f"{drive.address} is driven by {now or 'nobody'} now{failed}: dmesg says what the kernel waits for; "
        f"bamquery nvme unbind {drive.address} tries again, and a restart gives it to the kernel"
    )


def _undo(sysfs: Sysfs, step: Step, report: Report) -> None:
    report(f"undo: {step}")
    _do(sysfs, step, _UNDO_DEADLINE)


def _driver(machine: Machine, drive: Drive) -> str | None:
    return machine.link(machine.path(f"{_folder(drive)}/driver"))


def _reason(done: Sequence[Step], error: Exception) -> str:
    if isinstance(error, StorageError):
        return str(error)
    step = done[-1]
    if isinstance(error, TimeoutError):
        return f"{step}: the kernel did not come back ({error}); it may still do it"
    assert isinstance(error, OSError)
    return f"{step}: {error.strerror}"


def _folder(drive: Drive) -> str:
    return f"/sys/bus/pci/devices/{drive.address}"
