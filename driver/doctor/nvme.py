"""NVMe drives, and what it would take to drive them from user space."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bamquery.driver.doctor.finding import Finding, Level
from bamquery.driver.doctor.pcie import read_link
from bamquery.driver.machine import Machine
from bamquery.driver.nvme.drives import KERNEL, KernelNamespace, find_drives, namespaces_of
from bamquery.driver.nvme.iommu import SWITCH_ON, Module, find_iommu


def check_drives(machine: Machine) -> Iterator[Finding]:
    """Controllers that the kernel drives, with their namespaces, and those that something else drives."""
    controllers = machine.glob("/sys/class/nvme/nvme*")
    for controller in controllers:
        yield from _controller(machine, controller)
    others = list(_not_the_kernels(machine))
    yield from others
    if not controllers and not others:
        yield Finding(
            "NVMe",
            Level.NOTE,
            "no NVMe controller",
            "files are read from whatever disk holds them, by the software controller",
            "nothing; a local NVMe drive makes random reads fast",
        )


def check_iommu(machine: Machine) -> Iterator[Finding]:
    """Whether drives could be handed to user space safely."""
    iommu = find_iommu(machine)
    loaded = iommu.vfio_pci is Module.LOADED
    found = (
        f"{iommu.groups} groups; vfio-pci {'loaded' if loaded else 'not loaded'}; "
        f"{', '.join(iommu.interfaces) or 'no /dev/vfio/vfio, no /dev/iommu'}"
    )
    values = iommu.to_dict()
    if not iommu.groups:
        yield Finding(
            "IOMMU, VFIO",
            Level.NOTE,
            "no IOMMU groups",
            "a drive cannot be handed to user space; files work without",
            SWITCH_ON,
            values=values,
        )
    elif not loaded or not iommu.interfaces:
        yield Finding(
            "IOMMU, VFIO",
            Level.NOTE,
            found,
            "the IOMMU is on, but VFIO is not ready; files work without",
            "modprobe vfio-pci; bamquery nvme list says what else is in the way",
            values=values,
        )
    else:
        yield Finding("IOMMU, VFIO", Level.OK, found, values=values)


def _controller(machine: Machine, controller: Path) -> Iterator[Finding]:
    name = controller.name
    device = controller / "device"
    link = read_link(machine, device)
    model = machine.text(controller / "model") or "unknown model"
    firmware = machine.text(controller / "firmware_rev") or "unknown"
    transport = machine.text(controller / "transport") or "unknown"
    state = machine.text(controller / "state") or "unknown"
    node = machine.number(device / "numa_node")
    values: dict[str, Any] = {
        "model": model,
        "firmware": firmware,
        "transport": transport,
        "state": state,
        "driver": machine.link(device / "driver"),
        "iommu_group": machine.link(device / "iommu_group"),
        "numa_node": node,
        "link": None if link is None else link.to_dict(),
    }
    found = f"{name}: {model}, firmware {firmware}, {transport}"
    found += f", {link}" if link is not None else ""
    found += f", NUMA node {node}" if node is not None and node >= 0 else ""
    if state != "live":
        yield Finding(
            "NVMe",
            Level.MISSING,
            f"{found}, state: {state}",
            "the kernel does not get on with this drive now",
            "dmesg says why",
            values=values,
        )
    elif link is not None and link.is_slowed:
        yield Finding(
            "NVMe",
            Level.NOTE,
            found,
            "the link is slower than the drive",
            "a slot of the drive's generation with all its lanes",
            values=values,
        )
    else:
        yield Finding("NVMe", Level.OK, found, values=values)
    for namespace in namespaces_of(machine, name):
        yield _namespace(namespace)


def _namespace(namespace: KernelNamespace) -> Finding:
    free = not namespace.uses
    if namespace.block_bytes is not None and namespace.block_bytes < 4096:
        return Finding(
            "namespace",
            Level.NOTE if free else Level.OK,
            str(namespace),
            "blocks of 4096 bytes mean fewer commands where reads are large" if free else "",
            f"nvme id-ns -H /dev/{namespace.name} lists its formats; changing it erases all" if free else "",
            values=namespace.to_dict(),
        )
    return Finding("namespace", Level.OK, str(namespace), values=namespace.to_dict())


def _not_the_kernels(machine: Machine) -> Iterator[Finding]:
    for drive in find_drives(machine):
        values = {"address": drive.address, "driver": drive.driver}
        text = f"controller at {drive.address}, driver: {drive.driver or 'none'}"
        if drive.is_bound:
            yield Finding("NVMe", Level.OK, f"{text} (handed to user space)", values=values)
        elif drive.driver != KERNEL:
            yield Finding(
                "NVMe",
                Level.NOTE,
                text,
                "the kernel does not use it",
                f"bamquery nvme unbind {drive.address} gives it to the kernel, "
                f"bamquery nvme bind {drive.address} to user space",
                values=values,
            )
