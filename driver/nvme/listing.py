"""`bamquery nvme list`: drives, what uses them, what is in the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bamquery.driver.machine import Machine, gib
from bamquery.driver.nvme.drives import Drive, find_drives
from bamquery.driver.nvme.iommu import Iommu, find_iommu
from bamquery.driver.nvme.obstacles import find_obstacles, next_command

_INDENT = " " * 4


def list_as_dict(machine: Machine) -> dict[str, Any]:
    """Everything, for JSON; no serial numbers."""
    return {
        "iommu": find_iommu(machine).to_dict(),
        "drives": [_as_dict(machine, drive) for drive in find_drives(machine)],
    }


def list_as_lines(machine: Machine) -> Iterator[str]:
    """The same for people: a block of lines for each drive."""
    drives = find_drives(machine)
    if not drives:
        yield "no NVMe drives on the PCI bus"
    yield _iommu_line(find_iommu(machine))
    for drive in drives:
        obstacles = find_obstacles(machine, drive)
        yield _head(drive)
        yield f"{_INDENT}{_state(drive)}"
        for namespace in drive.namespaces:
            yield f"{_INDENT}{namespace}"
        for obstacle in obstacles:
            yield f"{_INDENT}in the way: {obstacle.what}"
        yield f"{_INDENT}next: {next_command(drive, obstacles)}"


def _as_dict(machine: Machine, drive: Drive) -> dict[str, Any]:
    obstacles = find_obstacles(machine, drive)
    return {
        "address": drive.address,
        "ids": drive.ids,
        "model": drive.model,
        "firmware": drive.firmware,
        "driver": drive.driver,
        "controller": drive.controller,
        "bytes": sum(namespace.bytes for namespace in drive.namespaces) if drive.controller else None,
        "namespaces": [namespace.to_dict() for namespace in drive.namespaces],
        "iommu_group": drive.group,
        "iommu_group_type": drive.group_type,
        "iommu_group_members": [str(member) for member in drive.members],
        "in_the_way": [obstacle.to_dict() for obstacle in obstacles],
        "next": next_command(drive, obstacles),
    }


def _head(drive: Drive) -> str:
    if drive.controller is None:
        return f"{drive.address}  drive {drive.ids} (its model is known once it is driven)"
    size = gib(sum(namespace.bytes for namespace in drive.namespaces))
    model = drive.model or f"drive {drive.ids}"
    return f"{drive.address}  {model}, firmware {drive.firmware or 'unknown'}, {size}"


def _state(drive: Drive) -> str:
    by = {None: "driven by nobody", "vfio-pci": "handed to user space (vfio-pci)"}.get(
        drive.driver, f"driven by {drive.driver}"
    )
    name = f" as {drive.controller}" if drive.controller else ""
    if drive.group is None:
        return f"{by}{name}; no IOMMU group"
    others = ", ".join(map(str, drive.members))
    return f"{by}{name}; IOMMU group {drive.group}, {f'with {others}' if others else 'alone in it'}"


def _iommu_line(iommu: Iommu) -> str:
    units = f"on ({len(iommu.units)} units, {iommu.groups} groups)" if iommu.groups else "off, or not there"
    return (
        f"IOMMU {units}; vfio-pci {iommu.vfio_pci}; {', '.join(iommu.interfaces) or 'no /dev/vfio/vfio yet'}"
    )
