"""What is in the way of handing a drive to user space, and the next command."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Final

from bamquery.driver.machine import Machine
from bamquery.driver.nvme.drives import Drive
from bamquery.driver.nvme.iommu import SWITCH_ON, Module, find_iommu
from bamquery.driver.nvme.uses import Use

_NEVER: Final = "choose another drive: this one the system runs from"


@dataclass(frozen=True)
class Obstacle:
    """One thing in the way.

    Attributes:
        what: names it.
        way_out: what to do, with the commands where there are any.
    """

    what: str
    way_out: str

    def __str__(self) -> str:
        return f"{self.what} → {self.way_out}"

    def to_dict(self) -> dict[str, str]:
        """For JSON."""
        return asdict(self)


def find_obstacles(machine: Machine, drive: Drive, together: Collection[str] = ()) -> list[Obstacle]:
    """Everything in the way of binding a drive, the worst first; none where it is bound.

    Args:
        machine: where it is.
        drive: the one.
        together: addresses of drives that are bound with it, and so do not keep the group from VFIO.
    """
    if drive.is_bound:
        return [_shared(drive, together)] if _blocking(drive, together) else []
    found = [_used(use) for use in sorted(drive.uses, key=lambda use: not use.is_root)]
    iommu = find_iommu(machine)
    if drive.group is None:
        state = f"the IOMMU is on ({', '.join(iommu.units)}), but not for it" if iommu.units else "it is off"
        unsafe = ", and VFIO without one is switched on, which BamQuery does not use" if iommu.without else ""
        found.append(Obstacle(f"there is no IOMMU group: {state}{unsafe}", SWITCH_ON))
    if _blocking(drive, together):
        found.append(_shared(drive, together))
    if iommu.vfio_pci is Module.ABSENT:
        release = machine.text("/proc/sys/kernel/osrelease") or "this"
        found.append(
            Obstacle(
                f"the kernel {release} has no module vfio-pci",
                "a kernel with CONFIG_VFIO_PCI",
            )
        )
    return found


def next_command(drive: Drive, obstacles: Collection[Obstacle]) -> str:
    """What to do next with a drive."""
    for obstacle in obstacles:
        return obstacle.way_out
    return f"bamquery nvme {'test' if drive.is_bound else 'bind'} {drive.address}"


def _used(use: Use) -> Obstacle:
    if use.is_root:
        return Obstacle(str(use), _NEVER)
    return Obstacle(str(use), use.way_out or "end that use")


def _blocking(drive: Drive, together: Collection[str]) -> list[str]:
    return [str(member) for member in drive.members if member.blocks and member.address not in together]


def _shared(drive: Drive, together: Collection[str]) -> Obstacle:
    others = _blocking(drive, together)
    drives = [member.address for member in drive.members if member.blocks and "NVMe" in member.kind]
    way_out = "a slot of its own, or ACS switched on in the firmware (docs/nvme.md)"
    if len(drives) == len(others):
        way_out = f"bamquery nvme bind {' '.join([drive.address, *drives])}, or {way_out}"
    return Obstacle(
        f"the IOMMU group {drive.group} is shared with what is not bound: {', '.join(others)}", way_out
    )
